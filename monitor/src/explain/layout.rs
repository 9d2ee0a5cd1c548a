//! The layout: titles, sections, paragraphs within 80 columns.

use crate::sink::paint::{self, Paint};

const WIDTH: usize = 80;

/// What is said of one process: sections of a heading and its paragraphs. One without paragraphs is not shown.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) sections: Vec<(&'static str, Vec<String>)>,
}

/// The pages, one after the other, and notes about all of them.
pub(super) fn render(pages: &[Page], notes: &[String], paint: Paint) -> String {
    let block = |page: &Page| {
        let mut block = String::new();
        for line in wrap(&page.title, "", "  ") {
            block += &paint.line(paint::NAME, line);
        }
        for (heading, paragraphs) in page.sections.iter().filter(|(_, paragraphs)| !paragraphs.is_empty()) {
            block += &["\n", &paint.line(paint::DIM, heading)].concat();
            // A line feed within a paragraph begins a new line further in.
            for (nth, part) in paragraphs.iter().flat_map(|paragraph| paragraph.split('\n').enumerate()) {
                let (indent, others) = if nth == 0 { ("  ", "    ") } else { ("      ", "      ") };
                block += &(wrap(part, indent, others).join("\n") + "\n");
            }
        }
        block
    };
    let notes = notes.iter().map(|note| wrap(note, "", "").join("\n") + "\n");
    pages.iter().map(block).chain(notes).collect::<Vec<_>>().join("\n")
}

/// Breaks a text between words. A word that is too long for a line has one of its own.
fn wrap(text: &str, first: &str, others: &str) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    let mut empty = true;
    for word in text.split_whitespace() {
        let line = lines.last_mut().map(|line| (line.chars().count(), line));
        let Some((columns, line)) = line else { break };
        let room = columns + 1 + word.chars().count() <= WIDTH;
        match (empty, room) {
            (true, _) => line.push_str(word),
            (false, true) => {
                line.push(' ');
                line.push_str(word);
            }
            (false, false) => lines.push(format!("{others}{word}")),
        }
        empty = false;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_never_within_one() {
        let text = "word ".repeat(40);
        let lines = wrap(&text, "  ", "    ");
        assert!(lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        let long = "x".repeat(100);
        assert_eq!(
            wrap(&format!("a {long} b"), "", " "),
            ["a".to_owned(), format!(" {long}"), " b".to_owned()]
        );
        assert_eq!(wrap("", "", ""), [""]);
    }

    #[test]
    fn an_empty_section_is_not_shown() {
        let sections = vec![("One", vec!["a\nb".to_owned()]), ("Two", Vec::new())];
        let page = Page { title: "t".to_owned(), sections };
        let shown = render(&[page], &["note".to_owned()], Paint::new(false));
        assert_eq!(shown, "t\n\nOne\n  a\n      b\n\nnote\n");
    }
}

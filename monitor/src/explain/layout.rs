//! The layout: titles, sections, paragraphs within 80 columns.

use crate::sink::paint::{self, Paint};

const WIDTH: usize = 80;

/// What is said of one process.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) sections: Vec<Section>,
}

/// A heading and its paragraphs. Without paragraphs it is not shown.
#[derive(Debug)]
pub(super) struct Section {
    heading: &'static str,
    paragraphs: Vec<String>,
}

impl Section {
    pub(super) const fn new(heading: &'static str, paragraphs: Vec<String>) -> Self {
        Self { heading, paragraphs }
    }
}

/// The pages, one after the other, and notes about all of them.
pub(super) fn render(pages: &[Page], notes: &[String], paint: Paint) -> String {
    let mut blocks = Vec::new();
    for page in pages {
        let mut block = String::new();
        for line in wrap(&page.title, "", "  ") {
            block.push_str(&paint.text(paint::NAME, line));
            block.push('\n');
        }
        for section in page.sections.iter().filter(|section| !section.paragraphs.is_empty()) {
            block.push('\n');
            block.push_str(&paint.text(paint::DIM, section.heading));
            block.push('\n');
            // A line feed within a paragraph begins a new line further in.
            for paragraph in &section.paragraphs {
                for (nth, part) in paragraph.split('\n').enumerate() {
                    let indent = if nth == 0 { "  " } else { "      " };
                    let others = if nth == 0 { "    " } else { "      " };
                    for line in wrap(part, indent, others) {
                        block.push_str(&line);
                        block.push('\n');
                    }
                }
            }
        }
        blocks.push(block);
    }
    for note in notes {
        blocks.push(wrap(note, "", "").join("\n") + "\n");
    }
    blocks.join("\n")
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
        let sections = vec![Section::new("One", vec!["a\nb".to_owned()]), Section::new("Two", Vec::new())];
        let page = Page { title: "t".to_owned(), sections };
        let shown = render(&[page], &["note".to_owned()], Paint::new(false));
        assert_eq!(shown, "t\n\nOne\n  a\n      b\n\nnote\n");
    }
}

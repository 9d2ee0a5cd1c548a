//! The page `docs/judgement.md`: every situation and its outcome, for people who want to know what may be ended before they trust
//! orphand. No process number and no time is in it, so that it is the same from run to run.

use std::fmt::Write as _;

use textwrap::{Options, WordSplitter, wrap};

use super::line::{Line, Summary};

/// Columns of a line, as in all pages of `docs/`.
const WIDTH: usize = 116;

const HEAD: &str = "\
# The judgement table

Every situation that orphand is tested on, built from real processes on the real kernel, and what it made of it.
`cargo xtask test judgement` plays all of them, fails when one is judged wrongly, and writes this page.
`cargo xtask test judgement --judge 'COMMAND'` lets another tool judge the same situations: COMMAND prints the numbers
of the processes that it would end, one a line.

Each situation is a function in `tests/situations/`. Those with the same outcome stand together, below a line with:

- **Truth**: *orphan*: nobody can use it any more, it must be ended. *in use*: nothing of it may be ended. *mixed*:
  both side by side. What is in use is really used: something goes on talking to it, or waiting for its results, until
  the judgement is over, and a use that breaks counts as wrong.
- **Verdict**: what became of the processes, seen from outside. In parentheses the daemon's last word: *orphan*,
  *unproven* (somebody may still use it: reported, not ended), *spared* (a guard holds), *in use* (its owner was found
  alive), *suspect* (no verdict yet); nothing, if it never was a suspect.
- **Reasons**: the evidence for an orphan, the doubts of an unproven server. **Guards**: what forbids to end even a
  proven orphan.
- *right*, *WRONG*, or *cost*: a true orphan that nobody can tell from something in use, with the reason. It is
  reported and left, and counts as not found.
";

/// The groups in the order of the page, with their headlines. Other groups come last under their own name.
const GROUPS: [(&str, &str); 15] = [
    ("orphans", "True orphans"),
    ("let_go", "Let go: what a server started and left to itself"),
    ("copies", "Copies: forks of the owner that go on with its work"),
    ("handed_on", "Handed on: wires that others talk through now"),
    ("shell_jobs", "A shell's jobs: pipelines and background work"),
    ("stdout", "Standard output: somebody waits for results"),
    ("clients", "Clients: used by other ways than the wire"),
    ("containers", "Containers: a client, and what it stands for"),
    ("identity", "Identity: who is who"),
    ("others", "Others that must survive"),
    ("published", "Published software"),
    ("abandoned", "Abandoned: the owner lives and has left them behind"),
    ("idle_duplicates", "Idle duplicates: a newer one is in use"),
    ("protocol", "Protocol: known by what is said to them"),
    ("sessions", "Sessions: what a registry says of their users"),
];

/// The whole page.
pub fn page(lines: &[Line]) -> String {
    let mut page = HEAD.to_owned();
    let known = GROUPS.iter().map(|(group, title)| ((*group).to_owned(), *title));
    let others: std::collections::BTreeSet<&str> =
        lines.iter().map(group).filter(|g| GROUPS.iter().all(|(known, _)| known != g)).collect();
    for (group, title) in known.chain(others.into_iter().map(|g| (g.to_owned(), g))) {
        section(&mut page, title, lines.iter().filter(|line| self::group(line) == group));
    }
    let _ = write!(page, "\n## Result\n\n```\n{}\n```\n", Summary::of(lines));
    page
}

/// The situations of a group, those with the same outcome together, in the order in which outcomes come up.
fn section<'a>(page: &mut String, title: &str, lines: impl Iterator<Item = &'a Line>) {
    let mut outcomes: Vec<(String, Vec<&Line>)> = Vec::new();
    for line in lines {
        let outcome = outcome(line);
        match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, same)) => same.push(line),
            None => outcomes.push((outcome, vec![line])),
        }
    }
    if outcomes.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n## {title}");
    for (outcome, lines) in outcomes {
        let _ = writeln!(page, "\n{}\n", wrapped(&outcome, ""));
        for line in lines {
            let name = line.name.split('/').next_back().unwrap_or_default();
            let cost = line.cost.as_ref().map(|cost| format!(" *Cost: {cost}*")).unwrap_or_default();
            let item = format!("- `{name}`: {}{cost}", line.description);
            let _ = writeln!(page, "{}", wrapped(&item, "  "));
        }
    }
}

/// Truth, verdict, reasons, guards and mark in one line.
fn outcome(line: &Line) -> String {
    let part = |name: &str, text: &str| {
        if text.is_empty() { String::new() } else { format!(" {name}: {text}.") }
    };
    format!(
        "Truth: {}.{}{}{} **{}**",
        line.truth.word(),
        part("Verdict", &line.verdict),
        part("Reasons", &line.reasons),
        part("Guards", &line.guards),
        line.mark(),
    )
}

fn wrapped(text: &str, indent: &str) -> String {
    let options = Options::new(WIDTH).subsequent_indent(indent).word_splitter(WordSplitter::NoHyphenation);
    wrap(text, options.break_words(false)).join("\n")
}

fn group(line: &Line) -> &str {
    line.name.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::stated::GroundTruth;

    fn line(name: &str, right: bool) -> Line {
        Line {
            name: name.to_owned(),
            description: "a pipe and a bar | of it".to_owned(),
            truth: GroundTruth::InUse,
            verdict: "let live (unproven)".to_owned(),
            reasons: "wire_held".to_owned(),
            guards: String::new(),
            right,
            cleaned: None,
            harmed: usize::from(!right),
            disturbed: false,
            cost: None,
        }
    }

    #[test]
    fn groups_come_in_their_order_and_none_is_lost() {
        let page = page(&[line("zebra/a", true), line("let_go/a", true), line("orphans/a", false)]);
        let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what:?} in {page}"));
        assert!(at("## True orphans") < at("## Let go") && at("## Let go") < at("## zebra"));
        assert!(at("## zebra") < at("## Result"));
        assert!(!page.contains("## Copies"), "an empty group has no section");
    }

    #[test]
    fn the_same_outcome_is_told_once() {
        let page = page(&[line("let_go/a", true), line("let_go/b", false), line("let_go/c", true)]);
        let right = "Truth: in use. Verdict: let live (unproven). Reasons: wire_held. **right**";
        let item = |name: &str| format!("- `{name}`: a pipe and a bar | of it\n");
        assert!(page.contains(&format!("\n{right}\n\n{}{}", item("a"), item("c"))), "{page}");
        let wrong = right.replace("right", "WRONG");
        assert!(page.contains(&format!("{wrong}\n\n{}", item("b"))), "{page}");
        assert!(page.contains("wrong signals: 1"), "{page}");
    }

    #[test]
    fn lines_are_short() {
        let long = Line { description: "of many words ".repeat(40), ..line("let_go/a", true) };
        assert!(page(&[long]).lines().all(|line| line.len() < 120));
    }
}

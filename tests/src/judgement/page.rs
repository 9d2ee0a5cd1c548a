//! The page `docs/judgement.md`: the table for users who want to know what orphand ends. It contains no
//! process ids and no times, so that it is the same for every run.

use std::fmt::Write as _;

use super::line::{Line, Summary};

const HEAD: &str = "\
# The judgement table

Every situation that orphand is tried on, built from real processes on the real kernel, and what it made of it. `cargo xtask test judgement` plays all of
them, fails when one is judged wrongly, and writes this page; `cargo xtask test judgement --judge 'COMMAND'` lets another tool judge the same situations:
COMMAND prints the numbers of the processes that it would end, one a line.

| column | meaning |
|---|---|
| situation | the name of its script, in `tests/situations/`, and what it plays |
| truth | *orphan*: nobody can use it any more, it must be ended. *in use*: nothing of it may be ended. *mixed*: both side by side |
| verdict | what became of the processes, seen from outside; in parentheses the daemon's last word: *orphan*, *unproven* (somebody may still use it: told, not ended), *spared* (a guard holds), *in use* (its owner was found alive), *suspect* (no verdict yet), nothing (it never was a suspect) |
| evidence or doubts | of an orphan the evidence, of an unproven one the doubts |
| guards | what forbids to end even a proven orphan |

In the last column *right*, *WRONG*, or *cost*: a true orphan that nobody can tell from something in use, with the reason; it is told and left, and counts as not found.

What is in use is really used: something goes on talking to it, or waiting for its results, until the judgement is over, and a use that breaks counts as wrong.
";

/// The groups in the order of the page, with their headlines. Other groups come last under their own name.
const GROUPS: [(&str, &str); 10] = [
    ("orphans", "True orphans"),
    ("let_go", "Let go: what a server started and left to itself"),
    ("copies", "Copies: forks of the owner that go on with its work"),
    ("handed_on", "Handed on: wires that others talk through now"),
    ("shell_jobs", "A shell's jobs: pipelines and background work"),
    ("stdout", "Standard output: somebody waits for results"),
    ("clients", "Clients: used by other ways than the wire"),
    ("identity", "Identity: who is who"),
    ("others", "Others that must survive"),
    ("published", "Published software"),
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

fn section<'a>(page: &mut String, title: &str, lines: impl Iterator<Item = &'a Line>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = write!(
        page,
        "\n## {title}\n\n| situation | truth | verdict | evidence or doubts | guards | |\n|---|---|---|---|---|---|\n"
    );
    for line in lines {
        let [what, verdict, reasons, guards] =
            [&line.description, &line.verdict, &line.reasons, &line.guards].map(|text| cell(text));
        let mark = match (line.mark(), &line.cost) {
            ("WRONG", _) => "**WRONG**".to_owned(),
            (_, Some(cost)) => format!("cost: {}", cell(cost)),
            (mark, None) => mark.to_owned(),
        };
        let name = line.name.split('/').next_back().unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{name}`: {what} | {} | {verdict} | {reasons} | {guards} | {mark} |",
            line.truth.word()
        );
    }
}

fn group(line: &Line) -> &str {
    line.name.split('/').next().unwrap_or_default()
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::stated::GroundTruth;

    fn line(name: &str, right: bool) -> Line {
        Line {
            name: name.to_owned(),
            description: "a | b".to_owned(),
            truth: GroundTruth::InUse,
            verdict: "let live (unproven)".to_owned(),
            reasons: "wire_held".to_owned(),
            guards: String::new(),
            right,
            cleaned: None,
            harmed: usize::from(!right),
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
    fn a_row_says_all_and_stays_one_row() {
        let page = page(&[line("let_go/a", true), line("let_go/b", false)]);
        assert!(
            page.contains("| `a`: a \\| b | in use | let live (unproven) | wire_held |  | right |"),
            "{page}"
        );
        assert!(page.contains("| **WRONG** |") && page.contains("wrong signals: 1"), "{page}");
    }
}

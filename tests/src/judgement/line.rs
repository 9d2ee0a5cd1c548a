//! A line of the table: a situation, what is true, and the result.

use std::fmt;

use super::{
    said::Said,
    stated::{Cast, GroundTruth, Stated},
};
use crate::host::Identity;

/// The fate of the processes, as seen from outside.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// The processes of the situation.
    pub cast: Cast,
    /// The orphans that were ended.
    pub ended: Vec<Identity>,
    /// Processes in use that were ended.
    pub harmed: Vec<Identity>,
}

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    /// `group/name`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// What is true.
    pub truth: GroundTruth,
    /// The result and what the judge said.
    pub verdict: String,
    /// Evidence or doubts.
    pub reasons: String,
    pub guards: String,
    /// Whether all orphans and no other processes were ended, and use continued.
    pub right: bool,
    /// Whether all orphans were ended; `None` if there were none.
    pub cleaned: Option<bool>,
    /// How many processes in use were ended.
    pub harmed: usize,
    /// Whether a use broke.
    pub disturbed: bool,
    /// Why a true orphan cannot be proven to be one and stays.
    pub cost: Option<String>,
}

impl Line {
    /// Compares the truth with the result. `use_went_on`: what the situation reports, if something is used.
    pub fn new(stated: &Stated, fates: &Fates, use_went_on: Option<bool>, said: Said) -> Self {
        let orphans = fates.cast.orphans.len();
        let cleaned = (orphans > 0).then_some(fates.ended.len() == orphans);
        let harmed = fates.harmed.len();
        let broken = use_went_on == Some(false);
        let right = (cleaned != Some(false) || stated.cost.is_some()) && harmed == 0 && !broken;
        let cost = stated.cost.clone().filter(|_| cleaned == Some(false));
        let mut verdict = Vec::new();
        if orphans > 0 {
            verdict.push(match fates.ended.len() {
                0 => "left",
                n if n == orphans => "ended",
                _ => "ended in part",
            });
        }
        if !fates.cast.in_use.is_empty() {
            verdict.push(match (harmed, broken) {
                (0, false) => "let live",
                (0, true) => "DISTURBED",
                _ => "KILLED",
            });
        }
        let mut verdict = verdict.join(", ");
        if !said.words.is_empty() {
            verdict = format!("{verdict} ({})", joined(said.words));
        }
        Self {
            name: stated.name.clone(),
            description: stated.description.clone(),
            truth: stated.truth,
            verdict,
            reasons: joined(said.reasons),
            guards: joined(said.guards),
            right,
            cleaned,
            harmed,
            disturbed: broken,
            cost,
        }
    }

    /// A situation that could not be built or closed. Nothing is known about it, so it is not right.
    pub fn broken(stated: &Stated) -> Self {
        let line = Self::new(stated, &Fates::default(), None, Said::default());
        Self { verdict: "BROKEN".to_owned(), right: false, ..line }
    }

    /// Whether it could not be built or closed.
    pub fn is_broken(&self) -> bool {
        self.verdict == "BROKEN"
    }

    /// Whether something in use was ended, or its use broke.
    pub fn is_false_kill(&self) -> bool {
        self.harmed > 0 || self.disturbed
    }

    /// `right`, `WRONG`, or `cost` for a true orphan that cannot be proven to be one.
    pub fn mark(&self) -> &'static str {
        match (self.right, &self.cost) {
            (true, None) => "right",
            (true, Some(_)) => "cost",
            (false, _) => "WRONG",
        }
    }
}

fn joined(words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let [reasons, guards] = [&self.reasons, &self.guards].map(|t| or_dash(t));
        let Self { name, verdict, .. } = self;
        write!(
            f,
            "{name:<42} {:<7} {verdict:<32} {reasons:<30} {guards:<18} {}",
            self.truth.word(),
            self.mark()
        )
    }
}

/// The totals of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Situations with true orphans.
    pub orphaned: usize,
    /// Those in which all true orphans were ended.
    pub cleaned: usize,
    /// Processes in use that were ended.
    pub wrong_signals: usize,
    /// Situations in which something is in use.
    pub wrong: usize,
    /// All situations.
    pub all: usize,
}

impl Summary {
    /// Counts.
    pub fn of(lines: &[Line]) -> Self {
        Self {
            orphaned: lines.iter().filter(|l| l.cleaned.is_some()).count(),
            cleaned: lines.iter().filter(|l| l.cleaned == Some(true)).count(),
            wrong_signals: lines.iter().map(|l| l.harmed).sum(),
            wrong: lines.iter().filter(|l| !l.right).count(),
            all: lines.len(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { orphaned, cleaned, wrong_signals, wrong, all } = self;
        writeln!(f, "situations: {all}, judged wrongly: {wrong}")?;
        // In tenths of a percent by integers, so that nothing is rounded up to 100 %.
        let tenths = (cleaned * 1000).checked_div(*orphaned).unwrap_or(1000);
        writeln!(
            f,
            "recall: {cleaned} of {orphaned} true orphans ended ({}.{} %)",
            tenths / 10,
            tenths % 10
        )?;
        write!(f, "wrong signals: {wrong_signals}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::stated::When;

    fn stated(truth: GroundTruth) -> Stated {
        let (name, description) = ("g/n".to_owned(), "d".to_owned());
        Stated {
            name,
            description,
            truth,
            when: When::Watched,
            needs: vec![],
            twin: None,
            cost: None,
            restart: false,
        }
    }

    fn fates(orphans: u32, in_use: u32, ended: usize, harmed: usize) -> Fates {
        let all =
            |from: u32, n: u32| (from..from + n).map(|pid| Identity { pid, start: 1 }).collect::<Vec<_>>();
        let cast = Cast { orphans: all(10, orphans), in_use: all(20, in_use), may_end: all(30, 1) };
        let (ended, harmed) = (cast.orphans[..ended].to_vec(), cast.in_use[..harmed].to_vec());
        Fates { cast, ended, harmed }
    }

    fn line(orphans: u32, in_use: u32, ended: usize, harmed: usize, went_on: Option<bool>) -> Line {
        Line::new(
            &stated(GroundTruth::Mixed),
            &fates(orphans, in_use, ended, harmed),
            went_on,
            Said::default(),
        )
    }

    #[test]
    fn right_is_all_orphans_and_nobody_else() {
        assert!(line(2, 1, 2, 0, Some(true)).right);
        assert!(line(2, 0, 2, 0, None).right);
        assert!(!line(2, 0, 1, 0, None).right);
        assert!(!line(0, 2, 0, 1, None).right);
        assert!(!line(0, 2, 0, 0, Some(false)).right, "use broke though all live");
    }

    #[test]
    fn what_cannot_be_proven_may_be_left_and_counts_as_not_found() {
        let costly = Stated { cost: Some("why".to_owned()), ..stated(GroundTruth::Orphan) };
        let line = |ended, harmed| Line::new(&costly, &fates(2, 1, ended, harmed), None, Said::default());
        assert_eq!((line(0, 0).mark(), line(2, 0).mark(), line(0, 1).mark()), ("cost", "right", "WRONG"));
        assert_eq!(Summary::of(&[line(0, 0), line(2, 0)]).cleaned, 1);
    }

    #[test]
    fn what_could_not_be_built_is_not_right() {
        let line = Line::broken(&stated(GroundTruth::Orphan));
        assert!(!line.right && line.cleaned.is_none() && line.verdict == "BROKEN");
    }

    #[test]
    fn the_verdict_is_what_was_seen_and_what_was_said() {
        assert_eq!(line(2, 1, 1, 0, None).verdict, "ended in part, let live");
        let said = Said { words: ["unproven".to_owned()].into(), ..Said::default() };
        let line = Line::new(&stated(GroundTruth::InUse), &fates(0, 1, 0, 1), None, said);
        assert_eq!((line.verdict.as_str(), line.mark()), ("KILLED (unproven)", "WRONG"));
    }

    #[test]
    fn the_last_lines_count() {
        let lines =
            [line(2, 0, 2, 0, None), line(1, 0, 0, 0, None), line(0, 3, 0, 2, None), line(0, 1, 0, 0, None)];
        let summary = Summary::of(&lines);
        assert_eq!(summary, Summary { orphaned: 2, cleaned: 1, wrong_signals: 2, wrong: 2, all: 4 });
        let text = summary.to_string();
        assert!(text.ends_with("recall: 1 of 2 true orphans ended (50.0 %)\nwrong signals: 2"), "{text}");
    }
}

//! What has ended: who ended it, when, on which evidence, by which signal.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Moment, Page};
use crate::sink::history::asked_by;
use orphand_core::model::{Fate, PastOrphan, PastRun, Reason, RunView, text};

pub(super) fn page(one: &PastOrphan, moment: &Moment) -> Page {
    Page {
        title: format!(
            "{} ({}): {}{}",
            text::sanitise(&one.name),
            text::sanitise(&one.id),
            state(one),
            asked_by(one)
        ),
        sections: vec![
            ("What it was", what(one, moment)),
            ("How it ended", end(one, moment)),
            ("Evidence", said(&one.evidence)),
            ("Doubts", said(&one.doubts)),
            ("Guards", said(&one.guards)),
        ],
    }
}

pub(super) fn said(all: &[impl Copy + Into<&'static Reason>]) -> Vec<String> {
    all.iter().map(|one| (*one).into().says.to_owned()).collect()
}

pub(super) fn fields(one: &PastOrphan) -> Value {
    let by = match one.outcome {
        Fate::Reaped { .. } | Fate::Ending => Some("orphand"),
        Fate::Exited { ref ending } if ending.is_by_orphand() => Some("orphand"),
        Fate::Exited { .. } | Fate::Unseen | Fate::Stays => None,
    };
    json!({ "server": one, "ended_by": by })
}

const fn state(one: &PastOrphan) -> &'static str {
    match one.outcome {
        Fate::Reaped { .. } => "ended by orphand",
        Fate::Exited { .. } | Fate::Unseen => "ended",
        Fate::Ending => "signalled by orphand",
        Fate::Stays => "its end is not known",
    }
}

fn what(one: &PastOrphan, moment: &Moment) -> Vec<String> {
    let mut all = vec![format!("It was a stdio server (rule {}).", text::sanitise(&one.rule))];
    if let Some(configured) = &one.hints.configured_name {
        all.push(format!("The settings of its agent called it \"{}\".", text::sanitise(configured)));
    }
    let owner = one.owner.as_deref().map(|owner| text::sanitise(owner).into_owned());
    if let Some(owner) = one.run.as_ref().map(RunView::title).or(owner) {
        all.push(format!("Its owner was {owner}."));
    }
    if !one.is_judged() {
        all.push("It was never judged: its owner lived, or its grace went on.".to_owned());
        return all;
    }
    let verdict = if one.doubts.is_empty() { "an orphan" } else { "unproven" };
    let memory = text::size(one.rss_bytes);
    all.push(format!("It was judged {verdict} {}, with {memory} of memory.", moment.time(one.judged)));
    all
}

fn end(one: &PastOrphan, moment: &Moment) -> Vec<String> {
    let at = one.ended.map(|at| format!(" {}", moment.time(at))).unwrap_or_default();
    let mut all = vec![match one.outcome {
        Fate::Reaped { signal, took_ms, .. } => {
            let signal = signal.map(|signal| format!(" with {}", signal.name())).unwrap_or_default();
            let took = took_ms.map(Duration::from_millis).map(text::duration);
            let took = took.map(|took| format!(", {took} after the first signal")).unwrap_or_default();
            format!("orphand ended it{signal}{at}{took}.")
        }
        Fate::Exited { ref ending } if ending.signal.is_some() => format!("It {},{at}.", ending.told()),
        Fate::Exited { ref ending } => format!("It {}{at}. orphand did not end it.", ending.words()),
        Fate::Unseen => format!("It exited{at} while no daemon saw it."),
        Fate::Ending => "orphand sent it a signal, and did not see its end.".to_owned(),
        Fate::Stays => "It is not there, and no daemon saw its end.".to_owned(),
    }];
    if let Some(by) = &one.asked_by {
        let spite = if one.doubts.is_empty() && one.guards.is_empty() {
            ""
        } else {
            ", in spite of what is said below"
        };
        all.push(format!("{} asked for that{spite}.", text::sanitise(by)));
    }
    if let Fate::Reaped { freed_bytes, freed_pss_bytes, .. } = one.outcome {
        all.push(format!("{}.", text::freed(freed_bytes, freed_pss_bytes)));
    }
    if let Some(failure) = &one.failure {
        all.push(format!("A process of it could not be ended: {}.", text::sanitise(failure)));
    }
    all
}

/// What is known of an agent that is not there any more, in one line.
pub fn ran(told: &str, run: &PastRun, moment: &Moment) -> String {
    let (name, count) = (run.run.name(), &run.account);
    let ended = match run.ended {
        Some(at) => format!("has ended ({})", moment.time(at)),
        None => "has ended, and its run goes on".to_owned(),
    };
    let had = [(count.servers, "server", "servers"), (count.orphans, "orphan", "orphans")];
    let had = had.into_iter().chain([(run.leftovers, "leftover", "leftovers")]);
    let had = had.map(|(many, one, more)| text::count(many, one, more)).collect::<Vec<_>>().join(", ");
    let (agent, name) = (text::numbered(&name, run.run.generation), text::quoted(&name));
    format!("{told}: the agent {agent} {ended}; it had {had}: `orphand history --agent {name}` has its runs")
}

#[cfg(test)]
mod tests {
    use super::super::tests::moment;
    use super::*;
    use orphand_core::model::{AgentHints, ServerCounts};

    #[test]
    fn of_an_agent_that_has_ended_it_is_said_what_it_had() {
        let account = ServerCounts { servers: 3, orphans: 1, ..ServerCounts::default() };
        let at = |text: &str| text.parse().unwrap();
        let mut run = PastRun {
            id: "20@7".to_owned(),
            run: RunView { generation: Some(3), ..RunView::unknown("claude", 0) },
            started: at("2026-07-27T12:00:00Z"),
            ended: Some(at("2026-07-27T12:01:00Z")),
            leftovers: 2,
            leftover_bytes: 0,
            hints: AgentHints::default(),
            account,
        };
        assert_eq!(
            ran("20", &run, &moment()),
            "20: the agent claude #3 has ended (2026-07-27 12:01:00); it had 3 servers, 1 orphan, 2 leftovers: \
             `orphand history --agent claude` has its runs"
        );
        run.ended = None;
        assert!(ran("20", &run, &moment()).contains("has ended, and its run goes on; it had"));
    }
}

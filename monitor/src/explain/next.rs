//! What happens next and when, and what a person can type now.

use super::Moment;
use orphand_core::model::{
    Doubt, Evidence, Explained, Guard, NextStep, NoServer, ServerReport, State, TakenFor, text,
};

pub(super) fn sentences(one: &Explained, asked_daemon: bool, moment: &Moment) -> Vec<String> {
    if one.taken_for == TakenFor::Nothing && asked_daemon {
        return vec!["Nothing: it is not judged, and orphand sends it no signal.".to_owned()];
    }
    if one.taken_for == TakenFor::Leftover {
        return vec!["Nothing: orphand tells of it, and never ends it unless a person asks.".to_owned()];
    }
    if !asked_daemon {
        return vec!["No daemon has answered: what happens next only a daemon can tell.".to_owned()];
    }
    let due = one.due.map(|due| format!("{} ({})", moment.until(due), moment.boot_time(due)));
    let due = due.unwrap_or_else(|| "before long".to_owned());
    let is_kept = one.report.as_deref().is_some_and(|report| report.state == State::Kept);
    let ended = if one.observes {
        "then it is reported and not ended: orphand is paused, or only observes"
    } else {
        "then it is ended: SIGTERM, and later SIGKILL"
    };
    let says = match one.next {
        None => "Nothing, while it lives. When it has exited, its servers have their grace, and are judged.",
        Some(NextStep::OwnerEnds) if one.owner.as_ref().is_some_and(|owner| !owner.alive) => {
            "Its owner has exited, and it is judged before long."
        }
        Some(NextStep::OwnerEnds) if one.owner.is_some() => {
            "Nothing, while its owner lives. When the owner has exited, it has its grace, and is judged."
        }
        Some(NextStep::OwnerEnds) => "Its owner is sought.",
        Some(NextStep::Idle) => {
            "A newer server of the same identity is in use. If this one does nothing, it counts as released {due}, and is \
             judged after abandoned_grace. If nothing keeps it, {ended}."
        }
        Some(NextStep::Never) => "Nothing: it has no owner that could leave it behind.",
        Some(NextStep::Judged) if one.taken_for == TakenFor::Agent => {
            "What started it has ended, or its unit was started anew. It is inspected again {due}. If its unit has gone on \
             without it, it is reported, and ended only where its rule says reap = true. If its standard input has ended and \
             nobody reads its output, it is reported."
        }
        Some(NextStep::InspectedAgain) if is_cut_off(one) => {
            "Nothing: orphand tells of it, and does not end it. When it has ended, its servers have their grace, and are judged."
        }
        Some(NextStep::Judged) => "It is judged {due}. If nobody can use it, {ended}.",
        Some(NextStep::Inspected) => "It is inspected now.",
        Some(NextStep::InspectedAgain) if is_kept => {
            "It is inspected again {due}. If no guard holds it, {ended}."
        }
        Some(NextStep::InspectedAgain) => {
            "It is inspected again {due}, or when a process that orphand follows has ended. If nothing keeps it, {ended}."
        }
        Some(NextStep::Ended) if one.observes => {
            "A signal was sent, and none follows: orphand is paused, or only observes. It is inspected again {due}."
        }
        Some(NextStep::Ended) => {
            "It is being ended: a signal was sent. What is left of it gets the next one, at last SIGKILL, {due}."
        }
        Some(NextStep::GivenUp) => {
            "Nothing: it could not be ended, and no more is tried unless a person asks."
        }
    };
    vec![says.replace("{due}", &due).replace("{ended}", ended)]
}

/// Whether it is an agent that is known to be left behind by its streams alone.
fn is_cut_off(one: &Explained) -> bool {
    let proof = one.report.as_deref().map(|report| &report.evidence);
    one.taken_for == TakenFor::Agent && proof.is_some_and(|proof| proof.contains(&Evidence::StdinHangup))
}

/// What a person can type now, and what each does.
pub(super) fn commands(one: &Explained) -> Vec<(String, &'static str)> {
    let pid = one.process.pid;
    if let Some(nothing) = &one.nothing {
        let is_unknown = matches!(nothing.reason, NoServer::NearMiss | NoServer::Silent);
        let what = "shows how a rule makes its program a server, if it is one.";
        return is_unknown.then(|| ("orphand config default".to_owned(), what)).into_iter().collect();
    }
    if is_cut_off(one) {
        return vec![(format!("kill {pid}"), "ends it; its servers follow.")];
    }
    let Some(report) = one.report.as_deref().filter(|_| one.taken_for != TakenFor::Agent) else {
        return Vec::new();
    };
    if one.taken_for == TakenFor::Leftover {
        let command = format!("sudo orphand reap --leftovers {}", report.server.id);
        return vec![(command, "ends it, and what is below it, after a question.")];
    }
    if one.let_go {
        return vec![(format!("kill {pid}"), "ends it.")];
    }
    let (flag, what) = match report.state {
        State::Unproven => (" --include-unproven", "ends it, although somebody may still use it."),
        State::Live if report.is_duplicate() => {
            (" --duplicates", "ends it, and a thread of its agent may be using it.")
        }
        State::Live | State::Suspect => (" --include-active", "ends it, and whoever uses it loses it."),
        _ => ("", "ends it."),
    };
    let is_guarded = report.guards.iter().any(|guard| !guard.yields_to_person());
    let end = match report.state {
        State::Ending => None,
        _ if is_guarded => stop_container(report),
        // Nobody should end a server for one of its processes without knowing it.
        _ if one.taken_for == TakenFor::ServerPart => Some((
            format!("sudo orphand reap {}{flag}", report.server.id),
            "ends that server, this process with it.",
        )),
        _ => Some((format!("sudo orphand reap {pid}{flag}"), what)),
    };
    let holder = report.reached_by.last().and_then(|step| step.pid).filter(|holder| *holder != pid);
    let what = "explains who can reach it; when nobody can any more, orphand may end it.";
    let holder = holder.map(|holder| (format!("sudo orphand explain {holder}"), what));
    // Once used, it is not asked about again by itself.
    let again = report.doubts.contains(&Doubt::Active);
    let what = "says that you are done with it: it is judged anew, and ended unless it is used.";
    let again = again.then(|| (format!("orphand release {pid}"), what));
    let is_idle = one.observes || report.guards.contains(&Guard::Observe);
    let what = "says whether orphand is paused, and by whom; sudo orphand resume ends a pause.";
    let mode = is_idle.then(|| ("orphand mode".to_owned(), what));
    again.into_iter().chain(end).chain(mode).chain(holder).collect()
}

fn stop_container(report: &ServerReport) -> Option<(String, &'static str)> {
    let container = report.server.container.as_ref().filter(|_| report.guards.contains(&Guard::Container))?;
    Some((text::clean(&container.command), "stops its container."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an agent is told that its streams show to be left behind. The twin is shown by its unit.
    #[test]
    fn a_person_is_told_how_to_end_an_agent_that_nobody_can_speak_to() {
        let moment = Moment {
            now: orphand_core::model::BootTime::default(),
            wall: crate::sink::wall_clock::WallClock { offset_ns: 0 },
            zone: jiff::tz::TimeZone::UTC,
            users: std::collections::BTreeMap::default(),
        };
        for (evidence, says, command) in [
            (Evidence::StdinHangup, "Nothing: orphand tells of it, and does not end it.", Some("kill 7")),
            (Evidence::UnitStopped, "It is inspected again before long.", None),
        ] {
            let report = ServerReport { state: State::Kept, evidence: vec![evidence], ..Default::default() };
            let mut one = Explained { report: Some(Box::new(report)), ..Explained::default() };
            (one.process.pid, one.taken_for, one.next) = (7, TakenFor::Agent, Some(NextStep::InspectedAgain));
            let next = sentences(&one, true, &moment);
            assert!(next[0].starts_with(says), "{next:?}");
            let typed = commands(&one);
            assert_eq!(typed.first().map(|(command, _)| command.as_str()), command);
        }
    }
}

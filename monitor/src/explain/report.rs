//! A bug report for the authors of a server or a client that leaks, as Markdown to be pasted. Pure.
//!
//! Invariant: nothing private is in it: of a process only the name of its program is told, and no number, path, argument,
//! user or time of day.

use std::fmt::Write as _;

use super::{Explanation, Moment, past::said};
use orphand_core::model::{
    Doubt, Evidence, Explained, Fate, PastOrphan, ReachedBy, ServerReport, State, TakenFor, text,
};

const ADVICE: &str = "A stdio server is expected to exit when its standard input ends: the client closes it to shut \
the server down, and the kernel does when the client is killed. A client is expected to close it, to wait, and then to \
end what is left of the launch chain.";

pub fn report(all: &Explanation, moment: &Moment, kernel: &str) -> String {
    let servers = all.living.iter().filter(|one| one.taken_for == TakenFor::Server);
    let living = servers.filter_map(|one| Some(living(one, one.report.as_deref()?, moment)));
    let judged = all.ended.iter().filter(|one| one.is_judged());
    let reports: Vec<String> = living.chain(judged.map(ended)).collect();
    if reports.is_empty() {
        let why = if all.ended.is_empty() { "it is no server" } else { "it did not outlive its client" };
        return format!("There is nothing to report: {why}.\n");
    }
    let seen = format!("Seen by orphand {} on Linux {kernel}.", env!("CARGO_PKG_VERSION"));
    format!("{}\n{ADVICE}\n\n{seen}\n", reports.join("\n"))
}

fn living(one: &Explained, report: &ServerReport, moment: &Moment) -> String {
    let server = &report.server;
    let lives = one.owner.as_ref().is_some_and(|owner| owner.alive);
    let mut told = heading(&server.name, if lives { "is in use" } else { "outlived its client" });
    let chain = server.processes.iter().map(|process| text::base(&process.exe));
    line(&mut told, "Processes", &chain.collect::<Vec<_>>().join(" > "));
    line(&mut told, "Known by", &text::sanitise(&server.rule));
    if let Some(owner) = &one.owner {
        let end = match (owner.alive, one.owner_exited) {
            (true, _) => "lives".to_owned(),
            (false, Some(at)) => format!("exited {} ago", text::duration(moment.now.since(at))),
            (false, None) => "has exited".to_owned(),
        };
        line(&mut told, "Client", &format!("{}, which {end}", text::sanitise(&owner.name)));
    }
    input(&mut told, &report.evidence, &report.doubts);
    let reached: Vec<String> = report.reached_by.iter().map(holder).collect();
    // Of one that was not inspected, and of one with doubts, that is not known.
    if report.is_orphan() || !reached.is_empty() {
        let who = if reached.is_empty() { "nobody".to_owned() } else { reached.join("; ") };
        line(&mut told, "Who can reach it", &who);
    }
    reasons(&mut told, &report.evidence, &report.doubts);
    let costs = [
        server.rss_bytes.map(|bytes| format!("{} of memory", text::size(bytes))),
        server.cpu_ms.map(|ms| {
            format!("{:.1} s of processor time", std::time::Duration::from_millis(ms).as_secs_f32())
        }),
        server.age(moment.now).map(|age| format!("runs for {}", text::duration(age))),
    ];
    line(&mut told, "What it costs", &costs.into_iter().flatten().collect::<Vec<_>>().join(", "));
    if report.state == State::Unproven {
        told.push_str("- It is not proven that nobody uses it.\n");
    }
    told
}

fn ended(one: &PastOrphan) -> String {
    let mut told = heading(&one.name, "outlived its client");
    line(&mut told, "Known by", &text::sanitise(&one.rule));
    if let Some(owner) = &one.owner {
        line(&mut told, "Client", &text::sanitise(owner));
    }
    input(&mut told, &one.evidence, &one.doubts);
    reasons(&mut told, &one.evidence, &one.doubts);
    line(&mut told, "What it cost", &format!("{} of memory", text::size(one.rss_bytes)));
    let end = match &one.outcome {
        Fate::Reaped { signal: Some(signal), took_ms: Some(ms), .. } => {
            format!("by {} of orphand, in {ms} ms", signal.name())
        }
        Fate::Reaped { .. } | Fate::Ending => "by a signal of orphand".to_owned(),
        Fate::Exited { ending } if ending.is_by_orphand() => "by a signal of orphand".to_owned(),
        Fate::Exited { ending } if ending.signal.is_some() => "by a signal, not of orphand".to_owned(),
        Fate::Exited { .. } => "by itself".to_owned(),
        Fate::Unseen | Fate::Stays => "not seen".to_owned(),
    };
    line(&mut told, "How it ended", &end);
    told
}

fn heading(name: &str, what: &str) -> String {
    format!("### `{}`, a stdio server, {what}\n\n", text::sanitise(name).replace('`', "'"))
}

fn line(told: &mut String, what: &str, is: &str) {
    let _ = writeln!(told, "- {what}: {is}");
}

/// What the server did with the end of its input.
fn input(told: &mut String, evidence: &[Evidence], doubts: &[Doubt]) {
    let is = match () {
        () if evidence.contains(&Evidence::StdinHangup) => "ended, and the server did not exit",
        () if doubts.contains(&Doubt::WireHeld) => "did not end: another process still has its other end",
        () => "not known to have ended",
    };
    line(told, "Standard input", is);
}

fn reasons(told: &mut String, evidence: &[Evidence], doubts: &[Doubt]) {
    let all = [said(evidence), said(doubts)].concat();
    if !all.is_empty() {
        line(told, "What is known", &all.join(" "));
    }
}

fn holder(step: &ReachedBy) -> String {
    let who = step.program.as_deref().map_or("somebody who cannot be seen", text::base);
    format!("`{}` {}", text::sanitise(who).replace('`', "'"), text::sanitise(&step.via))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};
    use orphand_core::model::{Ending, KilledBy, Killer};

    #[test]
    fn a_report_has_what_authors_need_and_nothing_private() {
        let mut leaks = with(State::Orphan, |report| {
            report.evidence = vec![Evidence::OwnerExited, Evidence::StdinHangup];
            report.server.cpu_ms = Some(1500);
        });
        leaks.owner = Some(agent(false));
        leaks.owner_exited = Some(seconds(90));
        let held = with(State::Unproven, |report| {
            report.doubts = vec![Doubt::WireHeld];
            report.reached_by = vec![stdin_of(1365)];
        });
        let all = Explanation { living: vec![leaks, held], asked_daemon: true, ..Explanation::default() };
        let told = report(&all, &moment(), "6.18.5");
        insta::assert_snapshot!("report", told);
        for private in ["/usr", "4711", "1365", "alice", "root", "12:0"] {
            assert!(!told.contains(private), "{private}: {told}");
        }
        let nothing = Explanation { living: vec![], ..all };
        assert_eq!(report(&nothing, &moment(), "6"), "There is nothing to report: it is no server.\n");
    }

    #[test]
    fn what_was_never_judged_is_accused_of_nothing() {
        let past = PastOrphan { evidence: Vec::new(), ..past(Fate::Unseen) };
        let all = Explanation { ended: vec![past], ..Explanation::default() };
        assert_eq!(
            report(&all, &moment(), "6"),
            "There is nothing to report: it did not outlive its client.\n"
        );
    }

    #[test]
    fn an_end_is_not_called_foreign_where_the_signal_was_of_orphand() {
        for (killer, how) in [
            (Some(Killer::of(KilledBy::Orphand)), "by a signal of orphand"),
            (None, "by a signal, not of orphand"),
        ] {
            let past = past(Fate::Exited { ending: Ending::signal(15, killer) });
            let all = Explanation { ended: vec![past], asked_daemon: true, ..Explanation::default() };
            let told = report(&all, &moment(), "6");
            assert!(told.contains(&format!("How it ended: {how}\n")), "{told}");
        }
    }
}

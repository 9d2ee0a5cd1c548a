//! Verbs that put one question to the daemon: `status`, `reload`, `release`; `pause`, `resume`, `mode`, which it remembers.

use anyhow::bail;
use jiff::Timestamp;
use serde_json::json;

use crate::{
    cli::{self, Common, ExitCode},
    os::clock,
    sink::{report, status as page, status::doing},
};
use orphand_core::model::{Asked, BootTime, Decided, Decision, ReleaseRequest, Released, Reloaded, text};

pub fn pause(flags: &cli::Pause) -> anyhow::Result<ExitCode> {
    let for_ms = flags.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    decide(&flags.common, Decision::Pause { for_ms })
}

pub fn mode(flags: &cli::Mode) -> anyhow::Result<ExitCode> {
    if let Some(decision) = flags.mode.clone() {
        return decide(&flags.common, decision);
    }
    let status = super::daemon(&flags.common.places).status(false)?;
    let decided = Decided { mode: status.mode, standing: status.standing, not_remembered: None };
    super::answer(flags.common.json, &decided, text)
}

pub fn decide(flags: &Common, decision: Decision) -> anyhow::Result<ExitCode> {
    // Whoever uses sudo(8) is somebody.
    let decided = super::daemon(&flags.places).decide(decision)?;
    super::answer(flags.json, &decided, text)?;
    if let Some(why) = decided.not_remembered {
        bail!(
            "it is in effect, and the next daemon will not know of it: {why}; free the state directory and say it again"
        );
    }
    Ok(ExitCode::Done)
}

fn text(decided: &Decided) -> String {
    let doing = doing(decided.mode, &decided.standing, Timestamp::now(), &clock::zone());
    let is_endless = decided.standing.pause.as_ref().is_some_and(|pause| pause.until.is_none());
    let end = if is_endless { ", until: sudo orphand resume" } else { "." };
    format!("orphand {doing}{end}\n")
}

pub fn status(flags: &cli::Status) -> anyhow::Result<ExitCode> {
    let status = super::daemon(&flags.common.places).status(flags.pss)?;
    let all = report::with(&status, [("totals", json!(status.report.totals()))])?;
    super::answer(flags.common.json, &all, |_| {
        page::render(&status, clock::now(), super::wall_clock(), &clock::zone(), super::paint())
    })
}

pub fn reload(flags: &Common) -> anyhow::Result<ExitCode> {
    let reloaded = super::daemon(&flags.places).reload()?;
    super::answer(flags.json, &reloaded, |Reloaded { later, .. }| match later.join(", ") {
        none if none.is_empty() => "Reloaded.\n".to_owned(),
        later => format!("Reloaded. {later} changed: this takes effect at the next start.\n"),
    })
}

pub fn release(flags: &cli::Release) -> anyhow::Result<ExitCode> {
    let request = ReleaseRequest { targets: flags.targets.clone(), session: flags.session.clone() };
    let released = super::daemon(&flags.common.places).release(request)?;
    let found = json!({ "servers": released });
    super::answer(flags.common.json, &found, |_| render(&released, clock::now()))?;
    let missed = flags.targets.iter().filter(|target| !released.iter().any(|one| has(one, target)));
    let session = flags.session.iter().filter(|_| released.is_empty());
    let missed = missed.map(|target| format!("{target} is no part of an MCP server that orphand knows"));
    let session = session.map(|_| "no server of yours was started for this session".to_owned());
    Ok(missed.chain(session).fold(ExitCode::Done, |_, what| super::unmatched(&what)))
}

/// Whether a server has this process. Not all processes of a large server are listed.
fn has(one: &Released, target: &Asked) -> bool {
    let listed = &one.server.processes;
    one.server.hidden() > 0 || target.is_id(&one.server.id) || listed.iter().any(|p| target.is(p.id()))
}

fn render(released: &[Released], now: BootTime) -> String {
    let line = |one: &Released| {
        let what = match one.deadline {
            Some(deadline) => {
                format!(
                    "is released and is judged in {}, unless it is used",
                    text::duration(deadline.since(now))
                )
            }
            None if one.released => format!("was released before, and is {}", one.state),
            None => {
                format!("is {}: a release changes nothing, as no owner of it that lives is known", one.state)
            }
        };
        format!("{} ({}) {what}.\n", text::sanitise(&one.server.name), one.server.id)
    };
    released.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::{ServerView, State};
    use std::time::Duration;

    #[test]
    fn what_a_release_means() {
        let server = ServerView { id: "7@8".to_owned(), name: "files".to_owned(), ..ServerView::default() };
        let one = Released { server, state: State::Suspect, released: true, deadline: None };
        let now = BootTime::default();
        let due = Released { deadline: Some(now + Duration::from_secs(30)), ..one.clone() };
        let used = Released { state: State::Unproven, ..one.clone() };
        let gone = Released { released: false, ..one };
        insta::assert_snapshot!(render(&[due, used, gone], now), @r"
        files (7@8) is released and is judged in 30 s, unless it is used.
        files (7@8) was released before, and is unproven.
        files (7@8) is suspect: a release changes nothing, as no owner of it that lives is known.
        ");
    }
}

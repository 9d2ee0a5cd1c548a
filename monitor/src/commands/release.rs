//! `orphand release`: tells the daemon that its caller is done with servers.

use crate::{
    cli::{self, ExitCode},
    os::clock,
};
use orphand_core::model::{Asked, BootTime, ReleaseRequest, Released, text};

pub fn release(flags: &cli::Release) -> anyhow::Result<ExitCode> {
    let request = ReleaseRequest { targets: flags.targets.clone(), session: flags.session.clone() };
    let released = super::daemon(&flags.common.places).release(request)?;
    let found = serde_json::json!({ "servers": released });
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
    one.server.hidden() > 0 || listed.iter().any(|p| target.is(p.id()))
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

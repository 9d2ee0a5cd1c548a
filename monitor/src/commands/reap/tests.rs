//! What is asked of the daemon after a person has seen the plan, and what is reported of it.

use super::*;
use orphand_core::model::{Doubt, Guard, RunView, ServerView};

fn server(id: &str, state: State, doubts: &[Doubt]) -> ServerReport {
    let server = ServerView { id: id.to_owned(), name: "files".to_owned(), ..ServerView::default() };
    ServerReport { server, doubts: doubts.to_vec(), state, ..ServerReport::default() }
}

/// A backend that has these servers and ends what it is asked to end.
struct Fake {
    servers: Vec<ServerReport>,
    asked: Vec<ReapRequest>,
}

impl Fake {
    fn new(servers: Vec<ServerReport>) -> Self {
        Self { servers, asked: Vec::new() }
    }
}

impl Backend for Fake {
    fn report(&mut self) -> anyhow::Result<Report> {
        Ok(Report { unowned: self.servers.clone(), ..Report::default() })
    }

    fn reap(&mut self, request: &ReapRequest) -> anyhow::Result<Report> {
        self.asked.push(request.clone());
        let meant = request.servers.clone().unwrap_or_default();
        self.servers.retain(|one| {
            !meant.contains(&one.server.id) || (one.is_unproven() && !request.include_unproven)
        });
        self.report()
    }
}

fn flags(words: &str) -> cli::Reap {
    use clap::Parser as _;
    let words = format!("orphand reap {words}");
    match cli::Cli::try_parse_from(words.split_whitespace()).unwrap().verb {
        cli::Verb::Reap(flags) => flags,
        other => panic!("{other:?}"),
    }
}

/// What was shown and confirmed is ended.
#[test]
fn an_unproven_one_that_was_asked_for_is_ended() {
    let mut backend = Fake::new(vec![server("1@1", State::Unproven, &[Doubt::WireHeld])]);
    let request = ReapRequest { include_unproven: true, ..ReapRequest::default() };
    let planned = backend.servers.clone();
    let code = clean_up(&flags("--include-unproven --yes"), &mut backend, &request, planned).unwrap();
    assert_eq!(code, ExitCode::Done);
    let servers = Some(vec!["1@1".to_owned()]);
    let expected = ReapRequest { servers, include_unproven: true, ..ReapRequest::default() };
    assert_eq!(backend.asked, [expected]);
    assert_eq!(backend.servers, []);
}

/// A target that is not there has a status of its own; that no orphan is there has none.
#[test]
fn what_matches_nothing_is_told() {
    for (words, code) in [
        ("4711 --yes", ExitCode::Unmatched),
        ("--agent nobody --dry-run", ExitCode::Unmatched),
        ("--generation 9 --yes --json", ExitCode::Unmatched),
        ("--yes", ExitCode::Done),
    ] {
        let flags = flags(words);
        let mut backend = Fake::new(Vec::new());
        let request = ReapRequest {
            targets: flags.targets.clone(),
            agent: flags.agent.clone(),
            generation: flags.generation,
            ..ReapRequest::default()
        };
        assert_eq!(clean_up(&flags, &mut backend, &request, Vec::new()).unwrap(), code, "{words}");
        assert_eq!(backend.asked, [], "{words}");
    }
}

/// Shown as an orphan, and somebody has taken hold of it since: nobody said yes to that.
#[test]
fn one_that_became_unproven_since_it_was_shown_stays() {
    let mut backend = Fake::new(vec![server("1@1", State::Orphan, &[])]);
    let request = ReapRequest::default();
    let planned = backend.servers.clone();
    backend.servers = vec![server("1@1", State::Unproven, &[Doubt::Clients])];
    let code = clean_up(&flags("--yes"), &mut backend, &request, planned).unwrap();
    assert_eq!(code, ExitCode::Failed);
    assert!(backend.asked.iter().all(|request| !request.include_unproven), "{:?}", backend.asked);
    assert_eq!(backend.servers.len(), 1);
}

#[test]
fn what_stays_says_what_was_found_at_the_last_moment() {
    let left =
        Report { unowned: vec![server("1@1", State::Unproven, &[Doubt::Clients])], ..Report::default() };
    let now = as_it_is_now(&item(server("1@1", State::Orphan, &[])), &left);
    assert_eq!(
        (now.planned.state, now.planned.doubts.as_slice()),
        (State::Unproven, [Doubt::Clients].as_slice())
    );
    let mut guarded = left;
    guarded.unowned[0].guards = vec![Guard::OwnUnit];
    assert_eq!(as_it_is_now(&now, &guarded).planned.guards, [Guard::OwnUnit]);
}

#[test]
fn it_waits_for_what_is_still_going_on() {
    let request = ReapRequest { servers: Some(vec!["1@1".to_owned()]), ..ReapRequest::default() };
    let of = |state: State| Report { unowned: vec![server("1@1", state, &[])], ..Report::default() };
    for &state in State::ALL {
        let done = !matches!(state, State::Ending | State::Suspect);
        assert_eq!(is_over(&of(state), &request), done, "{state}");
    }
    assert!(is_over(&Report::default(), &request));
}

#[test]
fn a_number_is_of_one_run() {
    let of = |id: &str, uid| {
        let mut one = server(id, State::Orphan, &[]);
        one.server.run = Some(RunView { generation: Some(1), ..RunView::unknown("claude", uid) });
        item(one)
    };
    let all = [of("1@1", 1000), of("2@2", 1000), of("3@3", 1001)];
    let all: Vec<&PlanItem> = all.iter().collect();
    let numbered = ReapRequest { generation: Some(1), ..ReapRequest::default() };
    let told = require_one_run(&numbered, &all).unwrap_err().to_string();
    assert!(told.contains("several runs are called claude #1"), "{told}");
    assert!(require_one_run(&numbered, &all[..2]).is_ok());
    assert!(require_one_run(&ReapRequest::default(), &all).is_ok());
}

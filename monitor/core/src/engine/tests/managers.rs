//! Servers that their manager releases: `orphand release`.

use super::{
    sessions::{did, manager, settings},
    story::{SERVER, Story, WIRE, id},
};
use crate::model::{Asked, Input, ReapRequest, ReleaseRequest, Signal, State, Stdio, Work};

const ROOT: u32 = 0;
const ALICE: u32 = 1000;
const BOB: u32 = 1001;

fn request(pid: u32) -> ReleaseRequest {
    ReleaseRequest { targets: vec![Asked::Pid(pid)], session: None }
}

/// What a user says, and what he is told: the state of each server, and whether it is released.
fn says(story: &mut Story, request: &ReleaseRequest, user: u32) -> Result<Vec<(State, bool)>, String> {
    story.hand_in(Input::Release { request: request.clone(), user });
    let told = story.engine.released(request, user)?;
    Ok(told.into_iter().map(|one| (one.state, one.released)).collect())
}

/// The manager 20 of the servers 30 and 40 has released 30.
fn released() -> Story {
    let mut story = manager(settings());
    let told = says(&mut story, &request(30), ROOT);
    assert_eq!((told, story.told()), (Ok(vec![(State::Suspect, true)]), vec!["orphan_suspected".to_owned()]));
    story
}

#[test]
fn a_released_server_is_ended_and_the_other_one_lives() {
    let mut story = released();
    story.pass_secs(29);
    assert_eq!(story.told(), Vec::<String>::new());
    story.pass_secs(2);
    assert_eq!(story.event("orphan_detected")["evidence"], serde_json::json!(["released"]));
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
}

#[test]
fn a_use_takes_the_release_back_until_it_is_released_again() {
    let mut story = released();
    story.pass_secs(10);
    story
        .work
        .insert(30, Work { cpu_ns: 9, read_bytes: 48, written_bytes: 72, writes: 1, ..Work::default() });
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_unproven active".to_owned()], Vec::new()));
    assert_eq!(says(&mut story, &request(30), ROOT), Ok(vec![(State::Suspect, true)]));
    story.pass_secs(31);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_detected", "orphan_reaped TERM"]);
}

/// The head of its launch chain has ended, as `npx` does: its id is that of the head still. The twin is the id of nobody.
#[test]
fn a_server_keeps_its_id_when_the_head_of_its_launch_chain_has_ended() {
    let mut story = manager(settings());
    story.start(30, 31, SERVER, WIRE);
    did(&mut story, 31, 1);
    story.end(30);
    for (head, server) in [(id(30), Some(31)), (crate::model::ProcessId::new(30, 1), None)] {
        let explained = story.engine.explain(&Asked::Id(head));
        assert_eq!(explained.first().map(|one| one.process.pid), server);
        let targets = vec![Asked::Id(head)];
        let reap = ReapRequest { targets: targets.clone(), include_active: true, ..ReapRequest::default() };
        assert_eq!(story.engine.plan(&reap).len(), usize::from(server.is_some()));
        let released = says(&mut story, &ReleaseRequest { targets, session: None }, ROOT);
        assert_eq!(released.unwrap().len(), usize::from(server.is_some()));
    }
}

/// A gateway that is a server itself says that it is done with one of its own: that is not the gateway.
#[test]
fn what_is_behind_a_gateway_is_not_the_gateway() {
    let mut story = manager(settings());
    did(&mut story, 31, 1);
    story.start(30, 31, SERVER, [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null]);
    story.told();
    assert_eq!(says(&mut story, &request(31), ROOT), Ok(vec![]));
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
}

#[test]
fn a_server_belongs_to_its_own_user() {
    let mut story = manager(settings());
    for (pid, user) in [(50, ALICE), (60, BOB)] {
        did(&mut story, pid, 1);
        story.fork(20, pid);
        story.exec_as(user, pid, 20, SERVER, [Stdio::Pipe(u64::from(pid)), Stdio::Pipe(7), Stdio::Null]);
    }
    story.told();
    let mut both = request(50);
    both.targets.push(Asked::Id(id(60)));
    // One of somebody else is among them: nothing is released.
    for (request, user) in [(request(30), ALICE), (request(50), BOB), (both, ALICE)] {
        let error = says(&mut story, &request, user).unwrap_err();
        assert!(error.starts_with("refused: server ") && !error.contains('\n'), "{error}");
    }
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
    assert_eq!(says(&mut story, &request(50), ALICE), Ok(vec![(State::Suspect, true)]));
    assert_eq!(says(&mut story, &request(60), ROOT), Ok(vec![(State::Suspect, true)]));
    let who = |pid| story.engine.explain(&Asked::Pid(pid))[0].released_by;
    assert_eq!([30, 50, 60].map(who), [None, Some(ALICE), Some(ROOT)]);
    // Why it is judged then is another reason.
    story.end(20);
    assert_eq!(story.engine.explain(&Asked::Pid(60))[0].released_by, None);
}

#[test]
fn a_release_that_changes_nothing_says_so() {
    let mut story = released();
    assert_eq!(says(&mut story, &request(30), ROOT), Ok(vec![(State::Suspect, true)]));
    assert_eq!(says(&mut story, &request(20), ROOT), Ok(Vec::new()), "the manager is no server");
    assert_eq!(says(&mut story, &ReleaseRequest::default(), ROOT), Ok(Vec::new()));
    assert_eq!(story.told(), Vec::<String>::new(), "the first release goes on");
    story.end(20);
    story.told();
    assert_eq!(says(&mut story, &request(40), ROOT), Ok(vec![(State::Suspect, false)]));
}

#[test]
fn the_servers_of_a_session_are_released() {
    let mut story = manager(settings());
    did(&mut story, 40, 1);
    let of = |id: &str| ReleaseRequest { targets: Vec::new(), session: Some(id.to_owned()) };
    assert_eq!(says(&mut story, &of("c"), ROOT), Ok(Vec::new()));
    assert_eq!(says(&mut story, &of("a"), ALICE), Ok(Vec::new()), "another user's session of this name");
    assert_eq!(says(&mut story, &of("a"), ROOT), Ok(vec![(State::Suspect, true)]));
    story.pass_secs(31);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

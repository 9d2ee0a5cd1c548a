//! Tests of the proof standard, conditions 4 and 5: nobody can talk to the server, nobody listens to it, and nobody
//! else uses it. Also tests of unproven cases.

use super::{
    proof::{OTHER, PLAIN, apart, ended, idle, judged, with_child, with_copy},
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, image},
    story_scene::{Copy, ProcessFacts, SocketUse, WireState},
};
use crate::{
    engine::Settings,
    model::{Asked, ExitStatus, Holder, Input, ProcessEvent, ReapRequest, State, Work},
};

pub(super) fn held_by(pid: u32, argv: &[&str]) -> WireState {
    let holder = Holder { process: id(pid), image: image(argv), ..Holder::default() };
    WireState::Held { holders: vec![holder], unseen: false }
}

/// Asserts that nothing was ended and that these doubts were reported.
pub(super) fn unproven(story: &mut Story, doubts: &str) {
    let told = story.told();
    let expected = format!("orphan_unproven {doubts}");
    assert!(told.contains(&expected), "{expected}: {told:?}");
    assert!(!told.iter().any(|line| line.starts_with("orphan_detected")), "{told:?}");
    story.pass_secs(2000);
    assert_eq!((story.sent(), story.told()), (vec![], vec![]), "told once, and nothing is done");
}

// ---- 4: nobody can talk to it, nobody listens ---------------------------------------------------------------------

#[test]
fn an_outside_holder_of_either_end_is_a_doubt_whatever_its_age() {
    for (older, pid) in [(true, 15), (false, 99)] {
        let mut story = Story::agent_with_server(Settings::default());
        story.facts.stdout = held_by(pid, &["cat"]);
        unproven(&mut judged(story), "stdout_read");
        let mut story = Story::agent_with_server(Settings::default());
        story.facts.stdin = held_by(pid, &["cat"]);
        let mut story = judged(story);
        if older {
            // The holder existed before the server: it is its host.
            assert!(story.told().contains(&"orphan_cleared owner_found".to_owned()));
            assert_eq!(story.sent(), []);
        } else {
            unproven(&mut story, "wire_held");
        }
    }
    let mut story = judged(Story::agent_with_server(Settings::default()));
    ended(&mut story, 30);
}

#[test]
fn a_holder_that_nobody_sees_is_a_holder() {
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdin = WireState::Held { holders: Vec::new(), unseen: true };
    unproven(&mut judged(story), "wire_held");
    // The server's own process does not count as a holder.
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdin = held_by(30, SERVER);
    ended(&mut judged(story), 30);
}

#[test]
fn an_idle_copy_of_the_killed_owner_holds_the_wire_by_accident() {
    let active = |cpu_ns| Some(Work { process: id(21), cpu_ns, ..Work::default() });
    for (change, in_use) in [
        (idle(0), false),
        (Copy { work: active(2), ..idle(0) }, true),
        (Copy { work: None, ..idle(0) }, true),
        (Copy { connected: true, ..idle(0) }, true),
        (Copy { sid: 21, ..idle(0) }, true),
    ] {
        let mut story = with_copy();
        story.copies = vec![idle(0)];
        story.facts.stdin = held_by(21, CLAUDE);
        story.told();
        story.end(20);
        story.copies = vec![change];
        story.pass_secs(10);
        if in_use {
            assert_eq!(story.sent(), [], "{change:?}");
        } else {
            ended(&mut story, 30);
            assert!(!story.sent().iter().any(|(pid, _)| *pid == 21), "the copy is nobody's server");
        }
    }
}

#[test]
fn no_copy_is_an_accident_while_another_one_is_at_work_that_may_give_it_work() {
    let waiting = || Copy { waits_for: Some(id(22)), ..idle(0) };
    let other = |cpu_ns| {
        let work = Some(Work { process: id(22), cpu_ns, ..Work::default() });
        Copy { process: id(22), work, ..idle(0) }
    };
    for at_work in [false, true] {
        let mut story = with_copy();
        story.fork(20, 22);
        story.copies = vec![waiting(), other(1)];
        // The other copy has no wire, but a queue that this one waits at.
        story.facts.stdin = held_by(21, CLAUDE);
        story.told();
        story.end(20);
        story.copies = vec![waiting(), other(1 + u64::from(at_work))];
        story.pass_secs(10);
        if at_work {
            assert_eq!(story.sent(), []);
            story.end(22);
            story.copies = vec![idle(0)];
            story.pass_secs(20);
        }
        ended(&mut story, 30);
    }
}

#[test]
fn a_copy_that_has_a_child_or_of_which_nothing_is_known_is_no_accident() {
    let mut story = with_copy();
    story.copies = vec![idle(0)];
    story.fork(21, 22);
    story.exec(22, 21, &["sleep"], PLAIN);
    story.facts.stdin = held_by(21, CLAUDE);
    assert_eq!(judged(story).sent(), []);
    let mut story = with_copy();
    story.facts.stdin = held_by(21, CLAUDE);
    assert_eq!(judged(story).sent(), []);
}

#[test]
fn an_owner_that_left_on_its_own_accord_left_its_work_to_its_copy() {
    let mut story = with_copy();
    story.copies = vec![idle(0)];
    story.told();
    let exit = ProcessEvent::Exit { at: story.now, process: id(20), status: ExitStatus::Code(0) };
    story.hand_in(Input::Process { event: exit });
    story.pass_secs(100);
    assert_eq!(story.told(), ["agent_exited", "agent_started"]);
    assert_eq!(story.sent(), []);
}

#[test]
fn another_server_of_the_same_dead_owner_inherited_the_wire_by_accident() {
    for of_the_same in [true, false] {
        let mut story = Story::agent_with_server(Settings::default());
        let owner = if of_the_same { 20 } else { 12 };
        if !of_the_same {
            story.exec(12, 10, CLAUDE, TERMINAL);
        }
        story.fork(owner, 31);
        story.exec(31, owner, SERVER, OTHER);
        story.facts.stdin = held_by(31, SERVER);
        let story = judged(story);
        assert_eq!(story.signals.iter().any(|(pid, ..)| *pid == 30), of_the_same);
    }
}

#[test]
fn what_the_server_let_go_is_outside() {
    let mut story = with_child(PLAIN);
    story.apart.insert(31, apart(31, PLAIN));
    story.facts.stdin = held_by(31, &["chromium"]);
    assert_eq!(judged(story).sent(), []);
}

#[test]
fn a_dying_owner_is_no_new_owner() {
    let settings = Settings { grace: std::time::Duration::ZERO, ..Settings::default() };
    let mut story = Story::agent_with_server(settings);
    story.facts.stdin = held_by(20, CLAUDE);
    story.end(20);
    story.pass_secs(0);
    assert_eq!(story.sent(), []);
    // Its files are closed a moment later.
    story.facts.stdin = WireState::HungUp;
    story.pass_secs(1);
    ended(&mut story, 30);
}

// ---- 5: nobody else uses it ---------------------------------------------------------------------------------------

#[test]
fn a_client_is_a_doubt_until_it_has_gone() {
    let mut story = Story::agent_with_server(Settings::default());
    story.sockets = SocketUse { listens: true, clients: true, ..SocketUse::default() };
    let mut story = judged(story);
    unproven(&mut story, "clients");
    story.sockets.clients = false;
    story.pass_secs(600);
    ended(&mut story, 30);
}

#[test]
fn a_server_that_listens_because_it_was_told_to_serve_has_clients() {
    const TOLD: &[&str] = &["npx", "-y", "@playwright/mcp", "--port", "8931"];
    for (argv, listens, in_use) in [(TOLD, true, true), (TOLD, false, false), (SERVER, true, false)] {
        let mut story = Story::new(Settings::default());
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.fork(20, 30);
        story.exec(30, 20, argv, WIRE);
        story.sockets = SocketUse { listens, ..SocketUse::default() };
        let mut story = judged(story);
        if in_use {
            unproven(&mut story, "clients");
        } else {
            ended(&mut story, 30);
        }
    }
}

#[test]
fn a_client_of_the_server_itself_is_none_and_one_that_was_let_go_is_one() {
    for (stdio, sid, in_use) in [(PLAIN, 31, true), (PLAIN, 0, false)] {
        let mut story = with_child(PLAIN);
        story.apart.insert(31, apart(sid, stdio));
        story.sockets.inside = vec![id(31)];
        assert_eq!(judged(story).sent().is_empty(), in_use);
    }
}

#[test]
fn a_traced_server_is_in_use() {
    let mut story = Story::agent_with_server(Settings::default());
    story.apart.insert(30, ProcessFacts { traced: true, ..ProcessFacts::default() });
    let mut story = judged(story);
    unproven(&mut story, "traced");
    story.apart.clear();
    story.pass_secs(600);
    ended(&mut story, 30);
}

// ---- unproven -----------------------------------------------------------------------------------------------------

#[test]
fn an_unproven_server_is_no_orphan_and_ends_at_a_persons_word() {
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdout = held_by(99, &["cat"]);
    story.polite.insert(30);
    let mut story = judged(story);
    assert_eq!(story.engine.counts(), [0, 1, 0]);
    assert_eq!(story.engine.report().orphans().count(), 0);
    assert_eq!(story.engine.plan(&ReapRequest::default()), []);
    let named = ReapRequest { targets: vec![Asked::Pid(30)], ..ReapRequest::default() };
    assert_eq!(story.engine.plan(&named), [], "a filter is no word");
    let request = ReapRequest { include_unproven: true, ..named };
    assert_eq!(story.engine.plan(&request)[0].state, State::Unproven);
    story.hand_in(Input::Reap { request });
    story.pass_secs(1);
    ended(&mut story, 30);
}

#[test]
fn a_change_of_doubts_is_told_once() {
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdin = held_by(99, &["cat"]);
    let mut story = judged(story);
    story.told();
    story.facts.stdout = held_by(99, &["cat"]);
    story.pass_secs(600);
    assert_eq!(story.told(), ["orphan_unproven wire_held stdout_read"]);
    // The process that held them exits. What was left exits by itself.
    story.end(30);
    assert_eq!(story.told(), ["orphan_cleared exited"]);
}

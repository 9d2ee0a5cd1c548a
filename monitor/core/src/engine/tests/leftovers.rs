//! Tests of leftovers: what an ended agent left that is no server. Each has a twin of which nothing is told.

use super::{
    proof::PLAIN,
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id},
    story_scene::WireState,
};
use crate::model::{
    Asked, Branch, ExitStatus, Fact, Input, LeftoverClass, Notice, Policy, ReapRequest, Signal, State,
};

const SHELL: &[&str] = &["bash", "-c", "sleep 1000 & wait"];
const JOB: &[&str] = &["sleep", "1000"];
const SCOPE: &str = "/user.slice/session-3.scope";

/// Agent 20 in a scope, with a background shell, 40, and its job, 41.
fn agent_with_shell() -> Story {
    let mut story = Story::new(Policy::default());
    story.place = Some(SCOPE.to_owned());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.start(20, 40, SHELL, PLAIN);
    story.start(40, 41, JOB, PLAIN);
    story.told();
    story
}

/// The heads of each event, and their classes.
fn found(story: &mut Story) -> Vec<(u64, Vec<(u32, LeftoverClass)>)> {
    let events = story.notices.drain(..).filter_map(|notice| match notice {
        Notice::LeftoversFound { count, processes, .. } => {
            Some((count, processes.iter().map(|one| (one.process.pid, one.class)).collect()))
        }
        _ => None,
    });
    events.collect()
}

/// The leftovers in the report, by the pid of the head.
fn listed(story: &Story) -> Vec<(u32, u64, State)> {
    let report = story.engine.report();
    let heads = report.leftovers().map(|(_, head)| head);
    heads.map(|one| (one.server.processes[0].pid, one.server.count(), one.state)).collect()
}

fn request(leftover: &str) -> Input {
    let request =
        ReapRequest { leftovers: true, servers: Some(vec![leftover.to_owned()]), ..ReapRequest::default() };
    Input::Reap { request, by: "alice".to_owned() }
}

#[test]
fn a_shell_and_its_job_are_one_leftover_after_the_grace() {
    let mut story = agent_with_shell();
    story.end(20);
    story.pass_secs(9);
    assert_eq!(found(&mut story), [], "what ends by itself in the grace is not told");
    story.pass_secs(2);
    assert_eq!(found(&mut story), [(1, vec![(40, LeftoverClass::Shell)])]);
    assert_eq!(listed(&story), [(40, 2, State::Leftover)]);
    let facts = story.facts_persisted.iter();
    assert_eq!(facts.filter(|fact| matches!(fact, Fact::Leftovers { count: 1, .. })).count(), 1);
    // The head ends: its job goes on in its place, and is no news.
    story.end(40);
    story.pass_secs(100);
    assert_eq!((found(&mut story), listed(&story)), (vec![], vec![(41, 1, State::Leftover)]));
    story.end(41);
    assert_eq!(listed(&story), []);
    assert_eq!(story.sent(), []);
}

/// A server stays as long as the shell may speak to it, or reads what it answers to another. The twin has no end of its wire.
#[test]
fn what_keeps_a_server_is_none_as_long_as_it_does_with_all_that_is_below_it() {
    let [free, held] = [WireState::HungUp, WireState::held_by(&[40])];
    let other = WireState::held_as(&[99], &["cat"]);
    for (stdin, stdout, keeps) in [
        (held.clone(), free.clone(), true),
        (other.clone(), held.clone(), true),
        (other.clone(), free.clone(), false),
        (free.clone(), free, false),
    ] {
        let mut story = agent_with_shell();
        story.start(20, 30, SERVER, WIRE);
        (story.facts.stdin, story.facts.stdout) = (stdin, stdout);
        story.end(20);
        story.pass_secs(60);
        let all = [(1, vec![(40, LeftoverClass::Shell)])];
        let expected = if keeps { &[][..] } else { &all[..] };
        assert_eq!(found(&mut story), expected);
        assert_eq!(listed(&story).len(), expected.len());
        (story.facts.stdin, story.facts.stdout) = (WireState::HungUp, WireState::HungUp);
        story.pass_secs(60);
        story.end(30);
        story.pass_secs(10);
        assert_eq!(listed(&story), [(40, 2, State::Leftover)]);
        assert_eq!(found(&mut story).len(), usize::from(keeps), "told once");
    }
}

#[test]
fn nothing_is_told_of_what_ended_in_the_grace() {
    let mut story = agent_with_shell();
    story.end(20);
    story.pass_secs(5);
    story.end(41);
    story.end(40);
    story.pass_secs(100);
    assert_eq!((found(&mut story), listed(&story)), (vec![], vec![]));
}

#[test]
fn what_was_detached_is_none() {
    // In another scope; adopted by a living agent; in a multiplexer; below an agent that lives; where the host was not
    // asked in time.
    for case in ["scope", "adopted", "tmux", "agent", "unread", "unknown", "twin"] {
        let mut story = Story::new(Policy::default());
        story.place = (case != "unknown").then(|| SCOPE.to_owned());
        story.exec(19, 10, &["codex"], TERMINAL);
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.start(20, 40, SHELL, PLAIN);
        match case {
            "scope" => drop(
                story
                    .branches
                    .insert(40, Branch { place: Some("/run-7.scope".to_owned()), ..Branch::default() }),
            ),
            "adopted" => drop(story.branches.insert(
                40,
                Branch { parent: Some(id(19)), place: Some(SCOPE.to_owned()), ..Branch::default() },
            )),
            "unread" => drop(story.branches.insert(40, Branch::default())),
            "tmux" => story.exec(40, 20, &["tmux", "new", "-d"], PLAIN),
            "agent" => story.exec(40, 20, &["codex"], TERMINAL),
            _ => {}
        }
        story.start(40, 41, JOB, PLAIN);
        story.end(20);
        story.pass_secs(100);
        let told = found(&mut story);
        assert_eq!(!told.is_empty(), case == "twin", "{case}: {told:?}");
        // What is below it is judged like it when it is gone.
        story.end(40);
        story.pass_secs(100);
        assert_eq!(!listed(&story).is_empty(), case == "twin" || case == "agent", "{case}");
    }
}

#[test]
fn servers_are_none_and_what_they_let_go_is() {
    let mut story = Story::new(Policy::default());
    story.place = Some(SCOPE.to_owned());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.start(20, 30, SERVER, WIRE);
    story.start(30, 31, &["/usr/bin/chromium", "--user-data-dir=/tmp/x"], PLAIN);
    story.setsid(31);
    story.apart.insert(31, super::proof::apart(31, PLAIN));
    story.polite.insert(30);
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    assert_eq!(found(&mut story), [(1, vec![(31, LeftoverClass::Browser)])]);
    // The twin: it belongs to the server, and ends with it.
    let mut story = Story::new(Policy::default());
    story.place = Some(SCOPE.to_owned());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.start(20, 30, SERVER, WIRE);
    story.polite.insert(30);
    story.end(20);
    story.pass_secs(100);
    assert_eq!(found(&mut story), []);
}

#[test]
fn a_listener_is_told_with_its_ports() {
    let mut story = agent_with_shell();
    let listens = vec!["127.0.0.1:3000".to_owned()];
    let branch =
        Branch { place: Some(SCOPE.to_owned()), rss_bytes: 7, cpu_ms: 8, listens, ..Branch::default() };
    story.branches.insert(40, branch);
    story.end(20);
    story.pass_secs(11);
    let told = story.notices.iter().find_map(|notice| match notice {
        Notice::LeftoversFound { agent, rss_bytes, cpu_ms, processes, .. } => {
            Some((agent.pid, *rss_bytes, *cpu_ms, processes.clone()))
        }
        _ => None,
    });
    let (agent, rss_bytes, cpu_ms, processes) = told.unwrap();
    assert_eq!((agent, rss_bytes, cpu_ms), (20, 7, 8));
    let [head] = &*processes else { panic!("{processes:?}") };
    assert_eq!((head.class, &*head.listens), (LeftoverClass::Listener, &["127.0.0.1:3000".to_owned()][..]));
    assert_eq!((head.processes_total, head.process.argv[0].as_str()), (2, "bash"));
}

#[test]
fn a_person_ends_what_was_named_and_nothing_else() {
    let mut story = agent_with_shell();
    story.start(20, 50, JOB, PLAIN);
    story.end(20);
    // Before it is told, nobody can have seen it.
    story.hand_in(request(&id(40).to_string()));
    assert_eq!(story.sent(), []);
    story.pass_secs(100);
    assert_eq!(listed(&story), [(40, 2, State::Leftover), (50, 1, State::Leftover)]);
    // Another process with the number is not meant.
    story.hand_in(request("40@7"));
    assert_eq!(story.sent(), []);
    story.polite.insert(40);
    story.hand_in(request(&id(40).to_string()));
    assert_eq!(story.sent(), [(40, Signal::Term), (41, Signal::Term)]);
    assert_eq!(listed(&story), [(41, 1, State::Ending), (50, 1, State::Leftover)]);
    // The job ignores it.
    story.pass_secs(5);
    assert_eq!(story.sent(), [(41, Signal::Kill)]);
    story.end_with(41, ExitStatus::Signal(9));
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    assert_eq!(listed(&story), [(50, 1, State::Leftover)]);
}

/// `systemd-run --scope` below a shell. The scope may be one that it is in only since it was told of.
#[test]
fn what_is_in_another_scope_below_a_leftover_stays() {
    for (told, asked) in [(true, true), (false, true), (false, false)] {
        let mut story = agent_with_shell();
        story.start(41, 42, JOB, PLAIN);
        story.start(42, 43, JOB, PLAIN);
        let apart = || Branch { place: Some(SCOPE.to_owned()), apart: vec![id(42)], ..Branch::default() };
        if told {
            story.branches.insert(40, apart());
        }
        story.end(20);
        story.pass_secs(11);
        assert_eq!(listed(&story), [(40, if told { 2 } else { 4 }, State::Leftover)]);
        if asked {
            story.branches.insert(40, apart());
        }
        story.polite.extend([40, 41]);
        story.hand_in(request(&id(40).to_string()));
        story.pass_secs(20);
        let sent = story.sent();
        assert_eq!(sent.iter().any(|(pid, _)| [42, 43].contains(pid)), !asked, "{sent:?}");
        assert_eq!(&sent[..2], [(40, Signal::Term), (41, Signal::Term)]);
        // It is none when what it was below is gone, and neither is what it leaves.
        story.end(42);
        assert_eq!(listed(&story).is_empty(), asked);
    }
}

#[test]
fn what_moved_into_another_scope_or_cannot_be_read_stays() {
    for place in [Some("/run-7.scope".to_owned()), None] {
        let mut story = agent_with_shell();
        story.end(20);
        story.pass_secs(11);
        story.branches.insert(40, Branch { place, ..Branch::default() });
        story.hand_in(request(&id(40).to_string()));
        story.pass_secs(20);
        assert_eq!((story.sent(), listed(&story).len()), (vec![], 1));
    }
}

#[test]
fn what_does_not_end_stays() {
    let mut story = agent_with_shell();
    story.errno = Some(1);
    story.end(20);
    story.pass_secs(11);
    story.hand_in(request(&id(40).to_string()));
    story.pass_secs(60);
    assert_eq!(listed(&story), [(40, 2, State::Leftover)]);
}

#[test]
fn a_plan_names_by_any_process_of_a_branch() {
    let mut story = agent_with_shell();
    story.end(20);
    story.pass_secs(11);
    let planned = |request: ReapRequest| story.engine.plan(&ReapRequest { leftovers: true, ..request }).len();
    let of = |pid| ReapRequest { targets: vec![Asked::Pid(pid)], ..ReapRequest::default() };
    assert_eq!([40, 41, 20].map(|pid| planned(of(pid))), [1, 1, 0]);
    let of = |name: &str| ReapRequest { agent: Some(name.to_owned()), ..ReapRequest::default() };
    assert_eq!(["claude", "codex"].map(|name| planned(of(name))), [1, 0]);
    // Without the word, a leftover is not among what is ended.
    assert_eq!(story.engine.plan(&ReapRequest { include_active: true, ..ReapRequest::default() }), []);
}

#[test]
fn a_fork_bomb_makes_one_event_of_bounded_size() {
    let mut story = Story::new(Policy::default());
    story.place = Some(SCOPE.to_owned());
    story.exec(20, 10, CLAUDE, TERMINAL);
    for pid in 1000..1500 {
        story.start(20, pid, JOB, PLAIN);
    }
    story.notices.clear();
    story.end(20);
    story.pass_secs(100);
    let told = found(&mut story);
    let [(500, heads)] = &*told else { panic!("{} events", told.len()) };
    assert_eq!(heads.len(), crate::model::SHOWN);
    assert_eq!(story.engine.report().totals().leftovers, 500);
}

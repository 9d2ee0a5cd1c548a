//! What a daemon that is started again must not end, because the one before would not have ended it.

use super::{
    found::daemon,
    proof::apart,
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, image, seen},
    story_scene::ProcessFacts,
};
use crate::{
    lineage::Node,
    model::{
        BootTime, ExitStatus, Fact, Image, Input, Knowledge, Losses, Policy, ProcessId, RememberedServer,
        Signal, SnapshotProcess, Stdio, Tracked, TrackedOwner, TrackedProgram, TrackedStart,
    },
    recognise::is_told_to_serve,
};

const PLAIN: [Stdio; 3] = [Stdio::Null; 3];

/// What the daemon of this story stored.
pub(super) fn known(story: &Story) -> Knowledge {
    let last = story.facts_persisted.iter().rev().find_map(|fact| match fact {
        Fact::Server { server } => Some(server.clone()),
        _ => None,
    });
    // As the store keeps it.
    let stored = serde_json::to_string(&last.unwrap()).unwrap();
    let servers = vec![RememberedServer { server: serde_json::from_str(&stored).unwrap(), orphan: None }];
    Knowledge { servers, restarted: true, ..Knowledge::default() }
}

/// The next daemon, with that, and these processes.
pub(super) fn next(story: &Story, rules: &str, found: Vec<SnapshotProcess>) -> Story {
    daemon(Some(0), Policy { rules: rules.to_owned(), ..Policy::default() }, known(story), found)
}

/// The agent of a server ends; the server's process 40 has run this program, and moved into the background.
fn guarded_by(argv: &[&str]) -> (Story, Vec<String>) {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 39, argv, PLAIN);
    story.fork(39, 40);
    story.end(39);
    let found = vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), seen(40, 1, argv, PLAIN)];
    let mut next = next(&story, "", found);
    next.end(20);
    next.pass_secs(30);
    let told = next.told();
    (next, told)
}

#[test]
fn a_multiplexer_in_the_background_guards_the_server_that_started_it() {
    let (mut next, told) = guarded_by(&["tmux", "new", "-d"]);
    assert!(told.contains(&"orphan_spared multiplexer".to_owned()), "{told:?}");
    assert_eq!(next.sent(), []);
    // Anything else does not.
    let (mut next, told) = guarded_by(&["sleep", "9"]);
    assert!(told.contains(&"orphan_detected".to_owned()), "{told:?}");
    assert!(!next.sent().is_empty());
}

/// Whatever a daemon has found again by then, the next one knows the guards that the one before knew.
#[test]
fn the_first_that_is_stored_of_a_server_that_was_found_again_has_its_guards() {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 39, &["tmux", "new", "-d"], PLAIN);
    story.fork(39, 40);
    story.end(39);
    let found =
        vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), seen(40, 1, &["tmux"], PLAIN)];
    let next = next(&story, "", found);
    let mut stored = next.facts_persisted.iter().filter_map(|fact| match fact {
        Fact::Server { server } => server.start.as_ref(),
        _ => None,
    });
    assert!(stored.clone().next().is_some());
    assert!(stored.all(|start| start.guarded_by.iter().map(|guard| guard.process).eq([id(40)])));
}

/// It was exempted meanwhile, while it lived or afterwards.
#[test]
fn a_rule_that_exempts_an_agent_exempts_what_an_earlier_daemon_saw_it_start() {
    const EXEMPT: &str = "[[exempt]]\nname = 'mine'\nprogram = 'claude'";
    for (rules, lives, ended) in
        [(EXEMPT, true, false), (EXEMPT, false, false), ("", true, true), ("", false, true)]
    {
        let story = Story::agent_with_server(Policy::default());
        let agent = lives.then(|| seen(20, 10, CLAUDE, TERMINAL));
        let parent = if lives { 20 } else { 1 };
        let found = agent.into_iter().chain([seen(30, parent, SERVER, WIRE)]).collect();
        let mut next = next(&story, rules, found);
        if lives {
            next.end(20);
        }
        next.pass_secs(30);
        assert_eq!(!next.sent().is_empty(), ended, "{rules} {lives}: {:?}", next.told());
    }
}

/// It ended long before: the next daemon asks its own rules about it, by what it ran. What was masked may have been anything.
#[test]
fn who_ended_before_a_restart_is_exempt_by_the_rules_of_now() {
    let argv = &["claude", "--project", "shop-9f3a81c2"][..];
    for (before, now, ended) in [
        ("claude", "claude", false),
        ("none", "claude", false),
        ("claude --project shop*", "claude --project shop*", false),
        ("claude", "none", true),
        ("claude", "claude --profile shop*", true),
        ("none", "none", true),
    ] {
        let rules = |program| format!("[[exempt]]\nname = 'mine'\nprogram = '{program}'");
        let mut story = Story::new(Policy::default());
        story.exec(20, 10, argv, TERMINAL);
        story.start(20, 30, SERVER, WIRE);
        story.hand_in(Input::Configured { policy: Policy { rules: rules(before), ..Policy::default() } });
        story.end(20);
        story.pass_secs(1);
        let mut next = next(&story, &rules(now), vec![seen(30, 1, SERVER, WIRE)]);
        next.pass_secs(30);
        assert_eq!(!next.sent().is_empty(), ended, "{before}, {now}: {:?}", next.told());
    }
}

/// A server that its first message showed has lost its head meanwhile; what it started, on pipes of its own or on its wires,
/// works on. Only a link of its launch chain is the server.
#[test]
fn a_job_is_not_the_server_that_started_it() {
    let own = [Stdio::Pipe(7), Stdio::Pipe(8), Stdio::Null];
    for (stdio, recognised, ended) in
        [(own, true, false), (own, false, false), (WIRE, false, false), (WIRE, true, true)]
    {
        let owner = TrackedOwner { main: id(20), name: "claude".to_owned(), ..TrackedOwner::default() };
        let programs =
            vec![TrackedProgram { process: id(40), creator: None, image: image(&["job"]), recognised }];
        let start = TrackedStart { stdin: WIRE[0], programs, ..TrackedStart::default() };
        let (processes, rule): (Vec<ProcessId>, _) = (vec![id(30), id(40)], "protocol".to_owned());
        let server = Tracked {
            id: id(30),
            processes,
            rule,
            owner: Some(owner),
            start: Some(start),
            ..Tracked::default()
        };
        let servers = vec![RememberedServer { server, orphan: None }];
        let knowledge = Knowledge { servers, restarted: true, ..Knowledge::default() };
        let mut next = daemon(Some(0), Policy::default(), knowledge, vec![seen(40, 1, &["job"], stdio)]);
        next.pass_secs(30);
        assert_eq!(!next.sent().is_empty(), ended, "{:?}", next.told());
    }
}

/// A server that its first message showed has started a daemon that is named like a server. The daemon before took that for a part of
/// the launch chain (`recognised`), or not.
#[test]
fn what_a_server_has_started_does_not_become_the_whole_server_by_its_name() {
    let owner = TrackedOwner { main: id(20), name: "claude".to_owned(), ..TrackedOwner::default() };
    for (both, chain) in [(true, vec![30, 40]), (false, vec![30])] {
        let program = |pid, recognised| TrackedProgram {
            process: id(pid),
            creator: None,
            image: image(&["x"]),
            recognised,
        };
        let programs = vec![program(30, true), program(40, both)];
        let start = TrackedStart { stdin: WIRE[0], programs, ..TrackedStart::default() };
        let server = Tracked {
            id: id(30),
            processes: vec![id(30), id(40)],
            rule: if both { "script-mcp" } else { "protocol" }.to_owned(),
            owner: Some(owner.clone()),
            start: Some(start),
            ..Tracked::default()
        };
        let servers = vec![RememberedServer { server, orphan: None }];
        let knowledge = Knowledge { servers, restarted: true, ..Knowledge::default() };
        let found = vec![
            seen(20, 10, CLAUDE, TERMINAL),
            seen(40, 30, SERVER, WIRE),
            seen(30, 20, &["tools-run"], WIRE),
        ];
        let mut next = daemon(Some(0), Policy::default(), knowledge, found);
        let recognised: Vec<u32> = (next.engine.world().servers().values())
            .flat_map(|server| server.recognised().iter().map(|process| process.pid))
            .collect();
        assert_eq!(recognised, chain, "{:?}", next.told());
    }
}

/// The same process, seen behind a title. `file`: what the name of its program leads to.
fn titled(pid: u32, parent: u32, file: &str, stdio: [Stdio; 3]) -> SnapshotProcess {
    let image = Image { exe: file.to_owned(), ..image(&["Weather: ready"]) };
    SnapshotProcess { titled: true, image, ..seen(pid, parent, &[""], stdio) }
}

const EXEMPT: &str = "[[exempt]]\nname = 'broker'\nprogram = 'broker.py'";

/// What an earlier daemon saw it run says what it is; another program in its place has another file.
#[test]
fn a_server_behind_a_title_is_the_server_that_it_was() {
    for (file, ended) in [("node", true), ("/usr/bin/node22", true), ("/usr/bin/vim", false)] {
        let story = Story::agent_with_server(Policy::default());
        let mut next = next(&story, "", vec![titled(30, 1, file, WIRE)]);
        next.pass_secs(30);
        assert_eq!(!next.sent().is_empty(), ended, "{file}: {:?}", next.told());
    }
}

#[test]
fn what_is_told_to_serve_is_told_so_behind_a_title() {
    let told = [SERVER, &["--socket", "/run/x.sock"]].concat();
    for (argv, is_told) in [(SERVER, false), (&told, true)] {
        let mut story = Story::with_agent();
        story.start(20, 30, argv, WIRE);
        let found = vec![seen(20, 10, CLAUDE, TERMINAL), titled(30, 20, "node", WIRE)];
        let next = next(&story, "", found);
        let image = next.engine.world().node(id(30)).and_then(Node::image).unwrap();
        assert_eq!(is_told_to_serve(image), is_told, "{image:?}");
    }
}

/// A server with an exempt program below it: also by the next daemon, and after its configuration was read again.
#[test]
fn an_exempt_program_behind_a_title_stays_exempt() {
    let broker = &["/usr/bin/python3", "/srv/broker.py"][..];
    let ready = || {
        vec![
            seen(20, 10, CLAUDE, TERMINAL),
            seen(30, 20, SERVER, WIRE),
            titled(40, 30, "/usr/bin/python3.11", PLAIN),
        ]
    };
    for (restart, argv, ended) in
        [(true, broker, false), (false, broker, false), (true, SERVER, true), (false, SERVER, true)]
    {
        let mut story = Story::new(Policy { rules: EXEMPT.to_owned(), ..Policy::default() });
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.start(20, 30, SERVER, WIRE);
        story.start(30, 40, argv, PLAIN);
        if restart {
            story = next(&story, EXEMPT, ready());
        } else {
            story.snapshot(ready());
        }
        story.end(20);
        story.pass_secs(30);
        assert_eq!(!story.sent().is_empty(), ended, "{restart} {argv:?}: {:?}", story.told());
    }
}

/// /proc is read again because of other rules, or because records were lost. A link led to the interpreter.
#[test]
fn a_title_is_no_exec() {
    const GATEWAY: &str = "[[agent]]\nname = 'gateway'\nprogram = 'gateway.py'";
    let gateway = &["/usr/bin/python3", "/srv/gateway.py"][..];
    for lost in [false, true] {
        let mut story = Story::new(Policy { rules: GATEWAY.to_owned(), ..Policy::default() });
        story.exec(20, 10, gateway, TERMINAL);
        // It goes into the background.
        story.fork(20, 21);
        story.end_with(20, ExitStatus::Code(0));
        story.start(21, 30, &["/venv/bin/python3", "/srv/mcp-server-weather"], WIRE);
        story.told();
        if lost {
            story.hand_in(Input::Lost { losses: Losses { exec: 1, ..Losses::default() } });
        }
        let file = "/usr/bin/python3.11";
        story.snapshot(vec![titled(21, 1, file, TERMINAL), titled(30, 21, file, WIRE)]);
        let told = story.told();
        assert!(told.iter().all(|event| ["lost", "resynced"].contains(&&**event)), "{told:?}");
        story.end(21);
        story.pass_secs(10);
        assert_eq!(story.sent(), [(30, Signal::Term)], "{:?}", story.told());
    }
}

/// It moved its input off descriptor 0. One that was never a server with a wire is none.
#[test]
fn a_server_that_moved_its_input_is_known_by_what_it_had() {
    let moved = [Stdio::Null, WIRE[1], Stdio::Null];
    let story = Story::agent_with_server(Policy::default());
    let mut next = next(&story, "", vec![seen(30, 1, SERVER, moved)]);
    next.pass_secs(30);
    assert!(!next.sent().is_empty(), "{:?}", next.told());
    let mut first =
        daemon(Some(0), Policy::default(), Knowledge::default(), vec![seen(30, 1, SERVER, moved)]);
    first.pass_secs(30);
    assert_eq!((first.told(), first.sent()), (vec!["ready".to_owned()], vec![]));
}

/// Who made its output is not known. Its launcher has another one, which is a file.
#[test]
fn what_is_found_below_a_launcher_that_writes_its_answers_into_a_file_is_nobodys() {
    let op = &["op", "run", "--", "mcp-server-filesystem"][..];
    for (output, ended) in [(Stdio::File, false), (WIRE[1], true)] {
        let found = vec![
            seen(20, 10, CLAUDE, TERMINAL),
            seen(29, 20, op, [WIRE[0], output, Stdio::Null]),
            seen(30, 29, SERVER, [WIRE[0], if ended { WIRE[1] } else { Stdio::Pipe(9) }, Stdio::Null]),
        ];
        let mut story = daemon(Some(0), Policy::default(), Knowledge::default(), found);
        story.end(20);
        story.end(29);
        story.pass_secs(30);
        assert_eq!(!story.sent().is_empty(), ended, "{:?}", story.told());
    }
}

/// A hook that is named like a server, say. What a rule of the configuration names is one.
#[test]
fn what_an_earlier_daemon_saw_start_and_took_for_no_server_is_none() {
    const OURS: &str = "[[program]]\nname = 'ours'\nkind = 'server'\nprogram = 'mcp-server-filesystem'";
    let seconds = |s: u64| Some(BootTime(s * 1_000_000_000));
    for (rules, watched_until, ended) in
        [("", seconds(10), false), ("", seconds(1), true), ("", None, true), (OURS, seconds(10), true)]
    {
        let found = vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)];
        let policy = Policy { rules: rules.to_owned(), ..Policy::default() };
        let knowledge = Knowledge { restarted: true, watched_until, ..Knowledge::default() };
        let mut next = daemon(Some(0), policy, knowledge, found);
        next.end(20);
        next.pass_secs(30);
        assert_eq!(!next.sent().is_empty(), ended, "{rules} {watched_until:?}: {:?}", next.told());
    }
}

/// `job & exec tool`: the parent of the job was a shell once, or never.
#[test]
fn what_a_shell_left_that_ran_another_program_is_known_to_the_next_daemon() {
    let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::Pipe(8)];
    for (argv, ended) in [(&["/bin/bash", "-c", "job & exec tool"][..], false), (&["tool"], true)] {
        let mut story = Story::agent_with_server(Policy::default());
        story.start(30, 31, argv, stdio);
        story.start(31, 32, &["job"], stdio);
        story.exec(31, 30, &["tool"], stdio);
        let below = vec![seen(31, 30, &["tool"], stdio), seen(32, 31, &["job"], stdio)];
        let found = [seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)].into_iter().chain(below);
        let mut next = next(&story, "", found.collect());
        for (pid, parent) in [(31, 30), (32, 31)] {
            let read_by = Some((Stdio::Pipe(7), id(30)));
            next.apart.insert(pid, ProcessFacts { parent, read_by, ..apart(0, stdio) });
        }
        next.end(20);
        next.pass_secs(600);
        assert_eq!(next.sent().iter().any(|(pid, _)| *pid == 32), ended, "{argv:?}: {:?}", next.told());
    }
}

//! What is around a server, and goes on or cleans up when that ends.

use super::{
    let_go::JOB,
    proof::{PLAIN, apart, judged, unproven},
    story::{SERVER, Story, WIRE, id},
    story_scene::{ProcessFacts, SocketUse, WireState},
};
use crate::model::Signal;

/// `trap 'kill 0' EXIT`: it would go on when the main process ends.
#[test]
fn a_script_around_the_main_process_ends_before_it() {
    for (shell, first) in [
        (&["/bin/bash", "bin/run-server"][..], (29, Signal::Kill)),
        (&["/bin/sh", "-c", "trap 'kill 0' EXIT; server"], (29, Signal::Kill)),
        (&["/bin/sh", "-c", "up; server; down"], (29, Signal::Kill)),
        (&["/bin/sh", "-c", "server;down"], (29, Signal::Kill)),
        (&["/bin/sh", "-c", "up && server && down"], (29, Signal::Kill)),
        (&["/usr/bin/make", "-s"], (29, Signal::Kill)),
        (&["/usr/bin/node", "/usr/bin/npm", "run", "mcp"], (29, Signal::Kill)),
        // It is the server, and what it runs a tool.
        (&["/usr/bin/python3", "start-mcp.py"], (29, Signal::Term)),
        (&["/bin/sh", "-c", "cd /srv && node server 2>&1"], (30, Signal::Term)),
        (&["/usr/bin/npx", "-y", "some-mcp"], (30, Signal::Term)),
    ] {
        for lets_go in [false, true] {
            let mut story = below_a_script(shell, false);
            let is_around = first == (29, Signal::Kill);
            story.polite.extend(is_around.then_some(29));
            if lets_go && is_around {
                story.start(30, 32, JOB, PLAIN);
                story.apart.insert(32, apart(32, PLAIN));
            }
            let mut story = judged(story);
            let mut sent = story.sent();
            let of_main = if lets_go && is_around { Signal::Kill } else { Signal::Term };
            // Those that are killed are stopped before, and killed from the bottom up.
            let both = if lets_go { [(30, of_main), first] } else { [first, (30, of_main)] };
            let begins = if is_around { sent.starts_with(&both) } else { sent.first() == Some(&first) };
            assert!(begins, "{shell:?} {sent:?}");
            story.pass_secs(400);
            sent.extend(story.sent());
            assert!(sent.contains(&(30, of_main)), "{sent:?} {:?}", story.told());
            assert!(!sent.iter().any(|(pid, _)| *pid == 32), "{sent:?}");
        }
    }
}

/// `trap 'kill $(jobs -p)' EXIT`, with a tunnel in the background; the twin has no trap.
#[test]
fn a_script_that_cleans_up_has_others_that_depend_on_the_server() {
    for (shell, catches_term, cleans_up) in [
        (&["/bin/bash", "bin/run-server"][..], true, true),
        (&["/bin/bash", "bin/run-server"], false, false),
        (&["/bin/bash", "-c", "tunnel & server; kill $!"], false, true),
        (&["/bin/bash", "-c", "tunnel & server;kill $!"], false, true),
        (&["/bin/bash", "-c", "tunnel & server && kill $!"], false, true),
        (&["/bin/bash", "-c", "cd /srv && tunnel & server"], false, false),
        (&["/usr/bin/python3", "start-tools"], false, true),
        (&["/bin/bash", "-c", "tunnel & server"], false, false),
        (&["/bin/bash", "-c", "tunnel && server && down"], false, true),
        (&["/bin/bash", "-c", "tunnel && mcp-server-filesystem"], false, false),
        (&["/bin/sh", "-ce", "tunnel; server; down"], false, true),
        (&["/bin/bash", "-euo", "pipefail", "-c", "--", "tunnel; server; down"], false, true),
        (&["/usr/bin/zsh", "--emulate", "sh", "-c", "tunnel & server; kill $!"], false, true),
        (&["/usr/bin/fish", "-C", "init", "-c", "tunnel & server; kill $!"], false, true),
        (&["/usr/bin/pwsh", "-NonInteractive", "-File", "run.ps1"], true, true),
        (&["/usr/bin/pwsh", "-ExecutionPolicy", "Bypass", "-c", "tunnel; server; down"], false, true),
        (&["/usr/bin/mise", "run", "mcp"], false, true),
        (&["/usr/bin/node", "/usr/bin/pnpm", "mcp"], false, true),
        (&["/usr/bin/timeout", "9h", "mcp-server-filesystem"], false, false),
        (&["/usr/bin/dumb-init", "mcp-server-filesystem"], false, true),
    ] {
        let mut story = below_a_script(shell, true);
        story.apart.get_mut(&29).unwrap().catches_term = catches_term;
        let mut story = judged(story);
        if cleans_up {
            unproven(&mut story, "depended_on");
        } else {
            assert_eq!(story.sent(), [(30, Signal::Term)]);
        }
    }
}

/// `dbus-run-session -- server`: it ends its bus, 31, with the server, and so what the server let go, 32. The twins let nothing go, have
/// no bus, or a shell in its place.
#[test]
fn what_a_launcher_started_beside_the_server_may_be_used_by_what_that_let_go() {
    const BUS: &[&str] = &["/usr/bin/dbus-run-session", "--", "server"];
    // Debian's is a script.
    const DISPLAY: &[&str] = &["/bin/sh", "/usr/bin/xvfb-run", "-a", "server"];
    for (launcher, with_bus, lets_go, depends) in [
        (DISPLAY, true, true, true),
        (BUS, true, true, true),
        (BUS, true, false, false),
        (BUS, false, true, false),
        (DISPLAY, true, false, false),
        (&["/bin/sh", "/srv/start", "xvfb-run"], true, true, false),
        (&["/bin/sh", "-c", "helper & server"], true, true, false),
    ] {
        let mut story = below_a_script(launcher, with_bus);
        if lets_go {
            story.start(30, 32, JOB, PLAIN);
            story.apart.insert(32, apart(32, PLAIN));
        }
        let mut story = judged(story);
        if depends {
            let name = launcher.iter().rfind(|word| word.starts_with("/usr")).unwrap();
            let by = name.rsplit('/').next().unwrap();
            let display = format!("31 may be ended with it, by {by} (pid 29)");
            assert_eq!(
                path(&story),
                ["32 was started by the server, goes on, and may use it (31)", &display]
            );
            unproven(&mut story, "depended_on");
            // The job ends.
            story.apart.remove(&32);
            story.end(32);
            story.pass_secs(1200);
        }
        assert!(
            story.sent().contains(&(30, Signal::Term)),
            "{launcher:?} {with_bus} {lets_go} {:?}",
            story.told()
        );
    }
}

/// Somebody from outside has called the display. The twins: nobody has, what is below the launcher has, and its launcher is a shell.
#[test]
fn what_a_launcher_started_beside_the_server_may_be_used_from_outside() {
    const DISPLAY: &[&str] = &["/bin/sh", "/usr/bin/xvfb-run", "-a", "server"];
    let of = |clients, inside| SocketUse { listens: true, clients, inside, ..SocketUse::default() };
    for (launcher, sockets, depends) in [
        (DISPLAY, of(true, vec![]), true),
        (DISPLAY, of(false, vec![]), false),
        (DISPLAY, of(false, vec![id(30)]), false),
        (&["/bin/sh", "-c", "helper & server"], of(true, vec![]), false),
    ] {
        let mut story = below_a_script(launcher, true);
        story.apart.insert(31, ProcessFacts { sockets: sockets.clone(), ..apart(10, PLAIN) });
        let mut story = judged(story);
        if depends {
            let last = path(&story).pop();
            assert!(last.is_some_and(|step| step.starts_with("31 may be ended with it, by ")));
            unproven(&mut story, "depended_on");
        } else {
            assert!(
                story.sent().contains(&(30, Signal::Term)),
                "{launcher:?} {sockets:?} {:?}",
                story.told()
            );
        }
    }
}

/// Also over a second end, and whoever is not seen beside somebody who is: each of them keeps it when the other has ended.
#[test]
fn all_who_can_reach_it_are_named_over_all_that_they_have() {
    let held = || WireState::held_by(&[40]);
    for (stdout, second) in [(held(), "40 reads"), (WireState::unseen(), "0 reads")] {
        let mut story = below_a_script(&["/bin/sh", "/srv/start"], false);
        (story.facts.stdin, story.facts.stdout) = (held(), stdout);
        let path = path(&judged(story));
        let is_told = |step: &str| path.iter().filter(|told| told.starts_with(step)).count() == 1;
        assert!(path.len() == 2 && is_told("40 can write to") && is_told(second), "{path:?}");
    }
}

/// Who is named as the reason, and for what that is one.
fn path(story: &Story) -> Vec<String> {
    let report = story.engine.report();
    let steps = report.servers().flat_map(|(_, server)| &server.reached_by);
    let far = |to: Option<u32>| to.map(|pid| format!(" ({pid})")).unwrap_or_default();
    steps.map(|step| format!("{} {}{}", step.pid.unwrap_or_default(), step.via, far(step.to))).collect()
}

/// Agent 20 runs a script, 29, which runs a server, 30, and perhaps a tunnel, 31.
fn below_a_script(shell: &'static [&'static str], with_tunnel: bool) -> Story {
    let mut story = Story::with_agent();
    story.polite.insert(30);
    story.start(20, 29, shell, WIRE);
    if with_tunnel {
        story.start(29, 31, &["/srv/tunnel"], PLAIN);
    }
    story.start(29, 30, SERVER, WIRE);
    story.apart.extend([(29, ProcessFacts { argv: shell, ..apart(10, WIRE) }), (30, apart(10, WIRE))]);
    story
}

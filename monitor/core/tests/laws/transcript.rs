//! A log as lines to read: what was handed in and what came out, one below the other.

use orphand_core::model::{About, Answer, Effect, Input, Notice, ProcessEvent, ProcessId, Subject};

use crate::{
    laws::{name, server_of},
    log::Log,
};

impl Log {
    /// The whole log.
    pub fn transcript(&self) -> String {
        let given = self.given.iter().enumerate().map(|(i, (now, g))| (*now, 0, i, input(g)));
        let effects = self.effects.iter().enumerate().map(|(i, (now, e))| (*now, 1, i, effect(e)));
        let mut lines: Vec<_> = given.chain(effects).collect();
        lines.sort_by_key(|(now, kind, i, _)| (*now, *kind, *i));
        lines.into_iter().fold(String::new(), |text, (now, _, _, line)| {
            format!("{text}{:>6}.{:04} {line}\n", now.0 / 1_000_000_000, now.0 / 100_000 % 10_000)
        })
    }
}

fn input(input: &Input) -> String {
    match input {
        Input::Timeout => "-> timeout".to_owned(),
        Input::Woke { slept } => format!("-> woke after {slept:?}"),
        Input::Process { event } => match event {
            ProcessEvent::Fork { creator, child, sid, .. } => {
                format!("-> fork {creator} > {child} sid {sid}")
            }
            ProcessEvent::Exec { process, parent, image, stdio, .. } => {
                format!("-> exec {process} ({parent}) {:?} on {:?}", image.argv, stdio[0])
            }
            ProcessEvent::Exit { process, status, .. } => format!("-> exit {process} {status:?}"),
            ProcessEvent::Setsid { process, .. } => format!("-> setsid {process}"),
            ProcessEvent::Signal { process, signal, .. } => format!("-> signal {signal} to {process}"),
            ProcessEvent::ThreadExit { process, thread, .. } => {
                format!("-> exit of {process}'s thread {thread}")
            }
        },
        Input::Snapshot { snapshot } => {
            let ids: Vec<String> = snapshot.processes.iter().map(|p| p.id.to_string()).collect();
            format!("-> snapshot {ids:?}")
        }
        Input::Answered { answer: Answer::Server { facts }, .. } => {
            let ids: Vec<u32> = facts.scene.processes.iter().map(|row| row.process.pid).collect();
            format!("-> answered {ids:?} ends {:?}", facts.scene.ends)
        }
        Input::Answered { answer: Answer::Memory { processes }, .. } => {
            format!("-> answered memory of {:?}", pids(processes.iter().map(|m| m.process)))
        }
        Input::Signalled { process, signal, error } => format!("-> signalled {process} {signal:?} {error:?}"),
        Input::Gone { process } => format!("-> gone {process}"),
        other => format!("-> {other:?}"),
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Persist { fact, .. } => format!("<- {fact:?}"),
        Effect::Emit { notice, .. } => match server_of(notice) {
            Some(view) => {
                let ids: Vec<u32> = view.processes.iter().map(|p| p.pid).collect();
                format!("<- {} {} {ids:?}", name(notice), view.id)
            }
            None => match &**notice {
                Notice::AgentStarted { agent, .. } | Notice::AgentExited { agent, .. } => {
                    format!("<- {} {} {}@{}", name(notice), agent.name, agent.pid, agent.start)
                }
                _ => format!("<- {}", name(notice)),
            },
        },
        Effect::Ask { about: About::Server(Subject { processes, .. }), .. } => {
            format!("<- ask server {:?}", pids(processes.iter().copied()))
        }
        Effect::Ask { about: About::Memory(processes), .. } => {
            format!("<- ask memory {:?}", pids(processes.iter().copied()))
        }
        Effect::Ask { about: About::Leftovers(branches), .. } => {
            format!("<- ask about what was left: {:?}", pids(branches.iter().flatten().copied()))
        }
        Effect::Ask { about: About::Container(query), .. } => {
            format!("<- ask which container {} works for", query.client)
        }
        Effect::Ask { about: About::Hints { server, .. }, .. } => {
            format!("<- ask what {server} is recognised by")
        }
        Effect::Ask { about: About::Stop { seen, .. }, .. } => format!("stop {}", seen.container.id),
        Effect::Ask { about: About::Copies(copies), .. } => {
            format!("<- ask copies {:?}", pids(copies.iter().copied()))
        }
        Effect::Ask { about: About::Session(subject), .. } => format!("<- ask session of {}", subject.main),
        Effect::Ask { about: About::HungUp(servers), .. } => {
            format!("<- ask which are hung up: {:?}", pids(servers.iter().map(|end| end.process)))
        }
        Effect::Ask { about: About::FirstMessage { processes, .. }, .. } => {
            format!("<- ask what is said to {:?}", pids(processes.iter().copied()))
        }
        Effect::Ask { about: About::Declared { process, .. }, .. } => {
            format!("<- ask what declares {process}")
        }
        Effect::Ask { about: About::Whereabouts(process), .. } => format!("<- ask where {process} works"),
        Effect::Ask { about: About::Work(processes), .. } => {
            format!("<- ask what {:?} did", pids(processes.iter().copied()))
        }
        Effect::Ask { about: About::Process(process), .. } => format!("<- ask what {process} is"),
        Effect::Signal { process, signal, .. } => format!("<- signal {signal:?} to {process}"),
        Effect::Track { process, tracking } => format!("<- track {process} {tracking:?}"),
        Effect::Untrack { process } => format!("<- untrack {process}"),
        Effect::FollowThread { process, thread, .. } => format!("<- follow thread {thread} of {process}"),
        Effect::Resync => "<- resync".to_owned(),
    }
}

fn pids(ids: impl Iterator<Item = ProcessId>) -> Vec<u32> {
    ids.map(|id| id.pid).collect()
}

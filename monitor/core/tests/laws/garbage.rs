//! Totality: whatever is handed in, in whatever order, the engine neither panics nor spins nor signals a
//! process that nobody told it of.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use orphand_core::{
    engine::Engine,
    model::{
        About, Answer, BootTime, Effect, ExitStatus, Ignored, Input, KilledBy, Killer, Losses, Memory,
        ProcessEvent, ProcessId, ServerFacts, Signal, SignalError, Snapshot, SnapshotProcess, Stdio, Unit,
        UnitFacts, UnitState, Whereabouts,
        scene::{Address, Began, Called, End, Endpoint, Holder, ProcessRow, Scene, Side, Unread},
    },
};
use proptest::prelude::*;

use crate::{
    host::Core,
    programs::{self, Program, Recipe, Step},
    properties::config,
};

fn programs() -> Vec<&'static Program> {
    let steps = Recipe::ALL.into_iter().flat_map(Recipe::steps);
    let launched = steps.map(|s| match s {
        Step::Exec(program) | Step::Fork(program) => *program,
    });
    let others = [
        &programs::CLAUDE,
        &programs::CODEX,
        &programs::PYTHON_HOST,
        &programs::STRANGE_HOST,
        &programs::BASH,
        &programs::TMUX,
        &programs::CONMON,
        &programs::INIT,
    ];
    launched.chain(others).collect()
}

fn id() -> impl Strategy<Value = ProcessId> {
    (0u32..8, 0u64..4).prop_map(|(pid, start)| ProcessId::new(pid, start))
}

fn stdio() -> impl Strategy<Value = Stdio> {
    prop_oneof![
        3 => (0u64..4).prop_map(Stdio::Pipe),
        1 => (0u64..4).prop_map(Stdio::Socket),
        1 => Just(Stdio::Null),
        1 => Just(Stdio::Closed),
    ]
}

fn seen() -> impl Strategy<Value = SnapshotProcess> {
    let program = prop::sample::select(programs());
    (id(), prop::option::of(id()), 0u32..2, 0u32..8, program, [stdio(), stdio(), stdio()], unit()).prop_map(
        |(id, parent, uid, sid, program, stdio, unit)| SnapshotProcess {
            id,
            parent,
            uid,
            sid,
            image: program.image(),
            titled: sid == 3,
            stdio,
            unit,
            place: (sid != 2).then(|| format!("/{}.scope", sid % 2)),
            slices: (0..sid % 3).map(|slice| format!("{slice}.slice")).collect(),
            hints: None,
            stale_binary: sid == 1,
        },
    )
}

/// Few units and invocations, so that they meet.
fn unit() -> impl Strategy<Value = Option<UnitFacts>> {
    let word = prop::sample::select(vec!["", "a", "b"]).prop_map(str::to_owned);
    let state = prop_oneof![
        Just(UnitState::Unknown),
        Just(UnitState::Stopped),
        word.clone().prop_map(UnitState::Active)
    ];
    let unit = (word.clone(), word.clone()).prop_map(|(manager, name)| Unit { manager, name });
    let facts = (unit, prop::option::of(word), state);
    prop::option::of(facts.prop_map(|(unit, invocation_id, state)| UnitFacts { unit, invocation_id, state }))
}

fn status() -> impl Strategy<Value = ExitStatus> {
    prop_oneof![any::<u8>().prop_map(ExitStatus::Code), any::<u8>().prop_map(ExitStatus::Signal)]
}

fn thread() -> impl Strategy<Value = Option<NonZeroU32>> {
    (0u32..3).prop_map(NonZeroU32::new)
}

fn killer() -> impl Strategy<Value = Box<Killer>> {
    let process = id().prop_map(|id| Killer {
        pid: Some(id.pid),
        start: Some(id.start),
        ..Killer::of(KilledBy::Process)
    });
    prop_oneof![Just(Killer::of(KilledBy::Kernel)), process].prop_map(Box::new)
}

fn event() -> impl Strategy<Value = ProcessEvent> {
    let at = any::<u32>().prop_map(|t| BootTime(u64::from(t)));
    prop_oneof![
        4 => (at.clone(), id(), thread(), id(), 0u32..2, 0u32..8)
            .prop_map(|(at, creator, thread, child, uid, sid)| ProcessEvent::Fork { at, creator, thread, child, uid, sid }),
        2 => (at.clone(), id(), thread()).prop_filter_map("a thread", |(at, process, thread)| {
            Some(ProcessEvent::ThreadExit { at, process, thread: thread? })
        }),
        4 => (at.clone(), seen()).prop_map(|(at, s)| ProcessEvent::Exec {
            at,
            process: s.id,
            parent: s.parent.unwrap_or_default(),
            uid: s.uid,
            sid: s.sid,
            image: s.image,
            stdio: s.stdio,
            ignored: Ignored { hangup: s.stale_binary, interrupt: s.stale_binary },
        }),
        2 => (at.clone(), id(), status())
            .prop_map(|(at, process, status)| ProcessEvent::Exit { at, process, status }),
        1 => (at.clone(), id(), 0u32..8)
            .prop_map(|(at, process, sid)| ProcessEvent::Setsid { at, process, sid }),
        1 => (at, id(), any::<u8>(), killer())
            .prop_map(|(at, process, signal, killer)| ProcessEvent::Signal { at, process, signal, killer }),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let memory = (id(), any::<u64>()).prop_map(|(process, rss_bytes)| Memory {
        process,
        rss_bytes,
        cpu_ms: rss_bytes,
    });
    let row = (seen(), any::<bool>(), any::<bool>(), any::<[bool; 3]>()).prop_map(
        |(seen, full, opted_out, ends)| {
            let row = ProcessRow {
                process: seen.id,
                uid: seen.uid,
                sid: seen.sid,
                image: seen.image,
                unit: seen.unit,
                stdio: seen.stdio,
                full,
                opted_out,
                ..ProcessRow::default()
            };
            (row, ends)
        },
    );
    let facts =
        (prop::collection::vec(row, 0..6), any::<bool>(), any::<bool>()).prop_map(|(rows, blind, named)| {
            let endpoints = vec![
                Endpoint::Pipe { inode: 1, named },
                Endpoint::Connection { near: 2, far: 3, began: Began::Unknown },
                Endpoint::Open { inode: 4, by: Address::Tcp, called: Called::Unknown, chosen: false },
            ];
            let sides = [[Side::Reads, Side::Writes], [Side::Near, Side::Far], [Side::Listens; 2]];
            let end = |endpoint: u32, holder: ProcessId, side: Side| End {
                endpoint,
                holder: Holder::Process(holder),
                side,
                numbers: Vec::new(),
                beyond: false,
            };
            let ends = rows.iter().enumerate().flat_map(|(at, (row, ends))| {
                let held = (0..).zip(sides).zip(ends).filter(|(_, held)| **held);
                held.map(move |((endpoint, sides), _)| end(endpoint, row.process, sides[at % 2]))
            });
            let ends = ends.collect();
            let processes = rows.into_iter().map(|(row, _)| row).collect();
            let why = || Unread { process: None, why: "blind".to_owned() };
            let unread = blind.then(why).into_iter().collect();
            ServerFacts { scene: Scene { processes, endpoints, ends, unread }, ..ServerFacts::default() }
        });
    prop_oneof![
        prop::collection::vec(memory, 0..4).prop_map(|processes| Answer::Memory { processes }),
        prop::option::of(seen()).prop_map(|process| Answer::Process { process }),
        facts.prop_map(|facts| Answer::Server { facts }),
        prop::option::of((0u64..2, prop::option::of(0u64..2))).prop_map(|place| Answer::Whereabouts {
            place: place.map(|(directory, command)| Whereabouts { directory, command, environment: command })
        }),
    ]
}

fn input() -> impl Strategy<Value = Input> {
    let snapshot =
        (any::<u32>(), prop::collection::vec(seen(), 0..8)).prop_map(|(t, processes)| Input::Snapshot {
            snapshot: Snapshot { horizon: BootTime(u64::from(t)), processes, ..Snapshot::default() },
        });
    let signal = prop_oneof![Just(Signal::Term), Just(Signal::Kill)];
    let error = prop::option::of(prop_oneof![
        Just(SignalError::Gone),
        Just(SignalError::Unsure { message: "another user".to_owned() }),
        Just(SignalError::System { errno: 1, message: "no".to_owned() }),
    ]);
    prop_oneof![
        20 => event().prop_map(|event| Input::Process { event }),
        1 => (0u64..3, 0u64..3)
            .prop_map(|(fork, member)| Input::Lost { losses: Losses { fork, member, ..Losses::default() } }),
        1 => snapshot,
        5 => (0u64..20, answer()).prop_map(|(token, answer)| Input::Answered { token, answer }),
        1 => (id(), signal, error).prop_map(|(process, signal, error)| Input::Signalled { process, signal, error }),
        2 => id().prop_map(|process| Input::Gone { process }),
        1 => Just(Input::Ready { kernel: String::new(), hooks: Vec::new() }),
        1 => (0u64..100).prop_map(|slept| Input::Woke { slept: Duration::from_secs(slept) }),
        1 => Just(Input::Stop),
    ]
}

/// Every process that an input names, and every one that a question could have named in its answer.
fn named(input: &Input, known: &mut BTreeSet<ProcessId>) {
    match input {
        Input::Process { event } => match event {
            ProcessEvent::Fork { creator, child, .. } => known.extend([*creator, *child]),
            ProcessEvent::Exec { process, parent, .. } => known.extend([*process, *parent]),
            ProcessEvent::Exit { process, .. }
            | ProcessEvent::Setsid { process, .. }
            | ProcessEvent::ThreadExit { process, .. }
            | ProcessEvent::Signal { process, .. } => {
                known.insert(*process);
            }
        },
        Input::Snapshot { snapshot } => {
            known.extend(snapshot.processes.iter().flat_map(|p| [Some(p.id), p.parent]).flatten());
        }
        Input::Answered { answer: Answer::Server { facts }, .. } => {
            known.extend(facts.scene.processes.iter().map(|row| row.process));
        }
        Input::Answered { answer: Answer::Process { process: Some(p) }, .. } => {
            known.insert(p.id);
        }
        _ => {}
    }
}

fn whole(core: &dyn Core) -> Result<(), String> {
    let broken = core.check();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

/// What goes wrong when `inputs` are handed in, questions answered by `answers` in turn.
pub fn abuse(core: &mut dyn Core, inputs: &[(u32, Input)], answers: &[Answer]) -> Result<(), String> {
    let mut known = BTreeSet::new();
    let mut answers = answers.iter().cycle();
    let mut now = BootTime(0);
    for (delay, input) in inputs {
        now = BootTime(now.0 + u64::from(*delay) * 1_000_000);
        named(input, &mut known);
        core.handle(now, input.clone());
        whole(core)?;
        for round in 0.. {
            let mut rounds = 0;
            while let Some(effect) = core.poll_effect() {
                rounds += 1;
                if rounds > 10_000 {
                    return Err("it never stops".to_owned());
                }
                match effect {
                    Effect::Signal { process, .. } if process.pid <= 1 || !known.contains(&process) => {
                        return Err(format!("a signal to {process}"));
                    }
                    Effect::Ask { token, about, .. } => {
                        let answer = match (about, answers.next()) {
                            (_, Some(answer)) => answer.clone(),
                            (About::Memory(_), None) => Answer::Memory { processes: Vec::new() },
                            (_, None) => Answer::Process { process: None },
                        };
                        let input = Input::Answered { token, answer };
                        named(&input, &mut known);
                        core.handle(now, input);
                        whole(core)?;
                    }
                    _ => {}
                }
            }
            if core.poll_timeout().is_none_or(|t| t > now) {
                break;
            }
            if round > 1000 {
                return Err(format!("it wants to be called at {now:?} again and again"));
            }
            core.handle(now, Input::Timeout);
            whole(core)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn garbage_is_survived(
        inputs in prop::collection::vec((0u32..20_000, input()), 0..120),
        answers in prop::collection::vec(answer(), 0..10),
    ) {
        let mut engine = Engine::default();
        prop_assert_eq!(abuse(&mut engine, &inputs, &answers), Ok(()));
    }
}

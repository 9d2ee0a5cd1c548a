//! Who uses an agent that its unit has left behind.

use super::{is_cut_off, is_used};
use crate::model::{
    ProcessId, Stdio,
    scene::{Began, End, Endpoint, Holder, ProcessRow, Scene, Side},
};

fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, u64::from(pid))
}

const FEEDER: u32 = 50;
const SERVER: u32 = 30;

/// What joins the agent with somebody: its side and numbers, and who has the other side.
type Joint = (Endpoint, Side, &'static [u32], Option<u32>);

/// Agent 20 with these streams. Its server is 30.
fn used(streams: [Stdio; 2], joints: &[Joint]) -> bool {
    is_used(&scene(streams, joints), id(20), &[id(SERVER)])
}

fn scene([input, output]: [Stdio; 2], joints: &[Joint]) -> Scene {
    let agent = ProcessRow {
        process: id(20),
        stdio: [input, output, Stdio::File],
        full: true,
        ..ProcessRow::default()
    };
    let others = [SERVER, FEEDER].map(|pid| ProcessRow { process: id(pid), ..ProcessRow::default() });
    let mut scene = Scene { processes: [agent].into_iter().chain(others).collect(), ..Scene::default() };
    for (at, (endpoint, side, numbers, other)) in (0..).zip(joints) {
        scene.endpoints.push(endpoint.clone());
        let end = |pid: u32, side, numbers| End {
            endpoint: at,
            holder: Holder::Process(id(pid)),
            side,
            numbers,
            beyond: false,
        };
        scene.ends.push(end(20, *side, numbers.to_vec()));
        scene.ends.extend(other.map(|other| end(other, side.opposite().unwrap(), vec![7])));
    }
    scene
}

fn pipe(inode: u64) -> Endpoint {
    Endpoint::Pipe { inode, named: false }
}

#[test]
fn an_agent_whose_streams_somebody_has_is_in_use() {
    let (nobody, own) = (None, Some(SERVER));
    let wires = [Stdio::Pipe(1), Stdio::Pipe(2)];
    for (other, expected) in [(Some(FEEDER), true), (nobody, false), (own, false)] {
        assert_eq!(used(wires, &[(pipe(1), Side::Reads, &[0], other)]), expected, "stdin of {other:?}");
        assert_eq!(used(wires, &[(pipe(2), Side::Writes, &[1], other)]), expected, "stdout of {other:?}");
        assert_eq!(
            used([Stdio::Null; 2], &[(pipe(9), Side::Reads, &[9], other)]),
            expected,
            "a pipe of {other:?}"
        );
        let pair = Endpoint::Connection { near: 1, far: 2, began: Began::Pair };
        let stdin = [Stdio::Socket(1), Stdio::File];
        assert_eq!(used(stdin, &[(pair, Side::Near, &[0], other)]), expected, "a pair of {other:?}");
    }
    // `claude 2>&1 | tee log`: the output goes there, too.
    assert!(used(wires, &[(pipe(2), Side::Writes, &[1, 2], Some(FEEDER))]));
    // To its errors alone nobody listens.
    assert!(!used([Stdio::Null; 2], &[(pipe(3), Side::Writes, &[2], Some(FEEDER))]));
}

#[test]
fn an_agent_at_a_terminal_is_in_use() {
    for terminal in [[Stdio::Terminal; 2], [Stdio::Null, Stdio::Terminal], [Stdio::Terminal, Stdio::File]] {
        assert!(used(terminal, &[]), "{terminal:?}");
    }
    assert!(!used([Stdio::Null, Stdio::File], &[]));
}

#[test]
fn nobody_waits_for_what_goes_to_the_journal() {
    let to_journal = |began| Endpoint::Connection { near: 1, far: 2, began };
    for (began, expected) in [(Began::Near, false), (Began::Far, true), (Began::Unknown, true)] {
        let streams = [Stdio::Null, Stdio::Socket(1)];
        assert_eq!(
            used(streams, &[(to_journal(began), Side::Near, &[1], Some(FEEDER))]),
            expected,
            "{began:?}"
        );
    }
}

/// The other end of neither is had by anybody, not by itself or what it started, and neither was dialled or has a name.
#[test]
fn an_agent_is_cut_off_if_both_streams_are_over() {
    let (pipes, sockets) = ([Stdio::Pipe(1), Stdio::Pipe(2)], [Stdio::Socket(1), Stdio::Socket(1)]);
    let named = Endpoint::Pipe { inode: 1, named: true };
    let read = |endpoint, other| (endpoint, Side::Reads, &[0][..], other);
    let written = |other| (pipe(2), Side::Writes, &[1][..], other);
    let joined = |began, other| {
        let pair = Endpoint::Connection { near: 1, far: 2, began };
        vec![(pair, Side::Near, &[0, 1][..], other)]
    };
    let (own, fed) = (Some(SERVER), Some(FEEDER));
    for (expected, streams, joints) in [
        (true, pipes, vec![read(pipe(1), None), written(None)]),
        (false, pipes, vec![read(pipe(1), fed), written(None)]),
        (false, pipes, vec![read(pipe(1), None), written(fed)]),
        (false, pipes, vec![read(pipe(1), own), written(None)]),
        (false, pipes, vec![read(pipe(1), Some(20)), written(None)]),
        (false, pipes, vec![read(named, None), written(None)]),
        (false, pipes, vec![written(None)]),
        (false, [Stdio::Pipe(1), Stdio::File], vec![read(pipe(1), None)]),
        (true, sockets, joined(Began::Pair, None)),
        (false, sockets, joined(Began::Pair, fed)),
        (false, sockets, joined(Began::Far, None)),
    ] {
        let found = is_cut_off(&scene(streams, &joints), id(20), &[id(SERVER)]);
        assert_eq!(found, expected, "{streams:?} {joints:?}");
    }
    let mut told = scene(pipes, &[read(pipe(1), None), written(None)]);
    told.processes[0].told_to_serve = true;
    assert!(!is_cut_off(&told, id(20), &[]));
}

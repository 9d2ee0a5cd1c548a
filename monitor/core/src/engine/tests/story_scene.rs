//! The scene that a simulated host shows, from what a test says about a server in fewer words.

use super::story::{id, image};
use crate::model::{
    Container, ContainerFacts, FirstMessage, Image, ProcessId, Stdio, UnitFacts, Work,
    scene::{
        Address, Began, Called, End, Endpoint, Holder, ProcessRow, Scene, SceneServer, Side, Unread, Wait,
    },
};

/// What is outside of a server, and what its processes have in common.
#[derive(Clone, Debug)]
pub struct Outside {
    pub processes: Vec<ProcessFacts>,
    /// Who has the other end of its standard input.
    pub stdin: WireState,
    /// Who has the other end of its standard output.
    pub stdout: WireState,
    /// Whether it still has its own ends of both.
    pub own_ends: [bool; 2],
    pub copies: Vec<Copy>,
    /// What its processes wait for.
    pub waits: Wait,
    /// What waits in its standard input.
    pub unread_input: Option<FirstMessage>,
    pub opted_out: bool,
    pub unit: Option<UnitFacts>,
    pub container: Option<Box<ContainerFacts>>,
    pub enclosing: Option<Box<Container>>,
    /// Why nothing could be read.
    pub blind: Option<String>,
}

/// Nobody has a wire.
impl Default for Outside {
    fn default() -> Self {
        Self {
            processes: Vec::new(),
            stdin: WireState::HungUp,
            stdout: WireState::HungUp,
            own_ends: [false; 2],
            copies: Vec::new(),
            waits: Wait::Ends,
            unread_input: Some(FirstMessage::Nothing),
            opted_out: false,
            unit: None,
            container: None,
            enclosing: None,
            blind: None,
        }
    }
}

/// A process of a server.
#[derive(Clone, Debug, Default)]
pub struct ProcessFacts {
    pub process: ProcessId,
    pub argv: &'static [&'static str],
    pub uid: u32,
    pub sid: u32,
    pub parent: u32,
    pub rss_bytes: u64,
    pub pss_bytes: Option<u64>,
    pub stdio: [Stdio; 3],
    /// Who has the other end of its standard error.
    pub joined: Vec<ProcessId>,
    pub sockets: SocketUse,
    pub stale_binary: bool,
    pub traced: bool,
    pub ignores_hangup: bool,
    pub ignores_interrupt: bool,
    pub catches_term: bool,
    pub awaits_child: bool,
    /// Whether it may go on by itself.
    pub busy: bool,
    pub awaited: Option<i32>,
    pub group: u32,
    pub reaps: bool,
    pub held: bool,
    pub hears_of_ends: bool,
    /// Who has the other end of this stream, which it writes; of its standard input, which it reads.
    pub read_by: Option<(Stdio, ProcessId)>,
    /// Who began a connection with another host that is its standard output.
    pub calls: Vec<Began>,
    /// Those who read a pipe to which it writes, beside the standard streams.
    pub feeds: Vec<ProcessId>,
}

/// How a process uses sockets of its own.
#[derive(Clone, Debug, Default)]
pub struct SocketUse {
    pub listens: bool,
    /// Whether somebody chose the port.
    pub chosen: bool,
    /// Whether somebody is connected who is not seen.
    pub clients: bool,
    /// Whether it has called somebody who is not seen.
    pub asks: bool,
    /// Those who are connected.
    pub inside: Vec<ProcessId>,
}

/// The other end of a wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireState {
    /// It could not be read.
    Unknown,
    /// Nobody has it.
    HungUp,
    /// These have it, and perhaps somebody `unseen`.
    Held { holders: Vec<ProcessRow>, unseen: bool },
}

impl WireState {
    /// These have it.
    pub fn held_by(pids: &[u32]) -> Self {
        let holder = |pid: &u32| ProcessRow { process: id(*pid), ..ProcessRow::default() };
        Self::Held { holders: pids.iter().map(holder).collect(), unseen: false }
    }

    /// These have it, all of which run this program.
    pub fn held_as(pids: &[u32], argv: &[&str]) -> Self {
        let holder =
            |pid: &u32| ProcessRow { process: id(*pid), image: image(argv), ..ProcessRow::default() };
        Self::Held { holders: pids.iter().map(holder).collect(), unseen: false }
    }

    /// Somebody has it whom nobody sees.
    pub fn unseen() -> Self {
        Self::Held { holders: Vec::new(), unseen: true }
    }
}

/// A forked copy of an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copy {
    pub process: ProcessId,
    pub sid: u32,
    /// Whether somebody who is not seen is connected with it.
    pub connected: bool,
    /// Who shares the memory at which it waits.
    pub waits_for: Option<ProcessId>,
    pub work: Option<Work>,
}

/// The rows of what is outside of this server.
pub fn scene(server: &SceneServer, outside: &Outside, others: &[ProcessFacts]) -> Scene {
    let mut scene = Scene::default();
    for facts in &outside.processes {
        let parent = outside.processes.iter().map(|one| one.process).find(|one| one.pid == facts.parent);
        let row = ProcessRow {
            process: facts.process,
            image: if facts.argv.is_empty() { Image::default() } else { image(facts.argv) },
            parent: parent.or(Some(ProcessId::new(facts.parent, u64::from(facts.parent)))),
            uid: facts.uid,
            sid: facts.sid,
            stdio: facts.stdio,
            unit: outside.unit.clone(),
            ignores_hangup: facts.ignores_hangup,
            ignores_interrupt: facts.ignores_interrupt,
            catches_term: facts.catches_term,
            awaits_child: facts.awaits_child,
            awaited: facts.awaited,
            group: facts.group,
            reaps: facts.reaps,
            held: facts.held,
            hears_of_ends: facts.hears_of_ends,
            stale_binary: facts.stale_binary,
            waits: if facts.busy { Wait::Anything } else { outside.waits },
            full: true,
            rss_bytes: facts.rss_bytes,
            pss_bytes: facts.pss_bytes,
            ..ProcessRow::default()
        };
        scene.processes.push(row);
    }
    outside.processes.iter().for_each(|facts| add_sockets(&mut scene, facts));
    if let Some(row) = scene.processes.first_mut() {
        row.opted_out = outside.opted_out;
    }
    for copy in &outside.copies {
        let (process, sid, work) = (copy.process, copy.sid, copy.work);
        scene.processes.push(ProcessRow {
            process,
            sid,
            work,
            waits: Wait::Ends,
            full: true,
            ..ProcessRow::default()
        });
        if copy.connected {
            use_by_anybody(&mut scene, process);
        }
        if let Some(other) = copy.waits_for {
            let at = endpoint(&mut scene, Endpoint::Memory { inode: 9 });
            end(&mut scene, at, Holder::Process(process), Side::Reads, 9);
            end(&mut scene, at, Holder::Process(other), Side::Writes, 9);
        }
    }
    for facts in others {
        let (process, sid, stdio, unit) = (facts.process, facts.sid, facts.stdio, outside.unit.clone());
        scene.processes.push(ProcessRow { process, sid, stdio, unit, full: true, ..ProcessRow::default() });
        add_sockets(&mut scene, facts);
    }
    let wires = [(server.stdin, &outside.stdin, true), (server.stdout, &outside.stdout, false)];
    for ((wire, state, reads), own) in wires.into_iter().zip(outside.own_ends) {
        let own = own || outside.processes.iter().any(|one| one.stdio.contains(&wire));
        add_wire(&mut scene, server, (wire, reads), state, own);
    }
    if let Some(why) = &outside.blind {
        scene.unread.push(Unread { process: None, why: why.clone() });
    }
    scene
}

fn endpoint(scene: &mut Scene, endpoint: Endpoint) -> u32 {
    scene.endpoints.push(endpoint);
    u32::try_from(scene.endpoints.len() - 1).unwrap()
}

fn end(scene: &mut Scene, endpoint: u32, holder: Holder, side: Side, number: u32) {
    scene.ends.push(End { endpoint, holder, side, numbers: vec![number], beyond: false });
}

fn use_by_anybody(scene: &mut Scene, process: ProcessId) {
    let at = endpoint(scene, Endpoint::Connection { near: 0, far: 0, began: Began::Far });
    end(scene, at, Holder::Process(process), Side::Near, 9);
    end(scene, at, Holder::Anybody, Side::Far, 9);
}

fn add_sockets(scene: &mut Scene, facts: &ProcessFacts) {
    let own = Holder::Process(facts.process);
    if facts.sockets.listens {
        let open =
            Endpoint::Open { inode: 0, by: Address::Tcp, called: Called::No, chosen: facts.sockets.chosen };
        let at = endpoint(scene, open);
        end(scene, at, own, Side::Listens, 8);
    }
    if facts.sockets.clients {
        use_by_anybody(scene, facts.process);
    }
    if facts.sockets.asks {
        let at = endpoint(scene, Endpoint::Connection { near: 0, far: 0, began: Began::Near });
        end(scene, at, own, Side::Near, 7);
        end(scene, at, Holder::Anybody, Side::Far, 7);
    }
    for client in &facts.sockets.inside {
        let at = endpoint(scene, Endpoint::Connection { near: 0, far: 0, began: Began::Far });
        end(scene, at, own, Side::Near, 9);
        end(scene, at, Holder::Process(*client), Side::Far, 9);
    }
    if facts.traced {
        let at = endpoint(scene, Endpoint::Trace);
        end(scene, at, own, Side::Depends, 0);
        end(scene, at, Holder::Anybody, Side::Serves, 0);
    }
    if let Some((Stdio::Pipe(inode), reader)) = facts.read_by {
        let at = endpoint(scene, Endpoint::Pipe { inode, named: false });
        let is_input = facts.stdio[0] == Stdio::Pipe(inode);
        let (near, far) = if is_input { (Side::Reads, Side::Writes) } else { (Side::Writes, Side::Reads) };
        let number = |process: ProcessId| {
            let row = scene.processes.iter().find(|row| row.process == process);
            let stream = row.and_then(|row| row.stdio.iter().position(|one| *one == Stdio::Pipe(inode)));
            stream.map_or(6, |stream| u32::try_from(stream).unwrap())
        };
        let (own_number, other_number) = (number(facts.process), number(reader));
        end(scene, at, own, near, own_number);
        end(scene, at, Holder::Process(reader), far, other_number);
    }
    for began in &facts.calls {
        let near = facts.stdio[1].inode().unwrap_or_default();
        let at = endpoint(scene, Endpoint::Connection { near, far: 0, began: *began });
        end(scene, at, own, Side::Near, 1);
    }
    if !facts.feeds.is_empty() {
        let at = endpoint(scene, Endpoint::Pipe { inode: 70, named: false });
        end(scene, at, own, Side::Writes, 6);
        facts.feeds.iter().for_each(|reader| end(scene, at, Holder::Process(*reader), Side::Reads, 5));
    }
    for other in &facts.joined {
        let at = endpoint(scene, Endpoint::Pipe { inode: 0, named: false });
        end(scene, at, own, Side::Reads, 2);
        end(scene, at, Holder::Process(*other), Side::Writes, 2);
    }
}

fn add_wire(
    scene: &mut Scene,
    server: &SceneServer,
    (wire, reads): (Stdio, bool),
    state: &WireState,
    own: bool,
) {
    let (is, sides) = match wire {
        Stdio::Pipe(inode) if reads => (Endpoint::Pipe { inode, named: false }, [Side::Reads, Side::Writes]),
        Stdio::Pipe(inode) => (Endpoint::Pipe { inode, named: false }, [Side::Writes, Side::Reads]),
        Stdio::Socket(near) => {
            (Endpoint::Connection { near, far: near << 32, began: Began::Pair }, [Side::Near, Side::Far])
        }
        _ => return,
    };
    let Some(main) = server.processes.first() else { return };
    let at = endpoint(scene, is);
    let streams: Vec<ProcessId> =
        scene.processes.iter().filter(|row| row.stdio.contains(&wire)).map(|row| row.process).collect();
    for process in streams {
        end(scene, at, Holder::Process(process), sides[0], u32::from(!reads));
    }
    if own || matches!(state, WireState::Held { .. }) {
        end(scene, at, Holder::Process(*main), sides[0], u32::from(!reads));
    }
    match state {
        WireState::HungUp => {}
        WireState::Unknown => {
            end(scene, at, Holder::Process(*main), sides[0], u32::from(!reads));
            end(scene, at, Holder::Unreadable, sides[1], 0);
        }
        WireState::Held { holders, unseen } => {
            if *unseen {
                end(scene, at, Holder::Anybody, sides[1], 0);
            }
            for holder in holders {
                end(scene, at, Holder::Process(holder.process), sides[1], 5);
                add_holder(scene, holder);
            }
        }
    }
}

fn add_holder(scene: &mut Scene, holder: &ProcessRow) {
    let known = scene.processes.iter_mut().find(|known| known.process == holder.process);
    match known {
        Some(known) => (known.image, known.unit) = (holder.image.clone(), holder.unit.clone()),
        None => scene.processes.push(holder.clone()),
    }
}

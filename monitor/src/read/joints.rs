//! Which sockets and pipes are ends of what, before it is known who has them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    process::{Member, oldest},
    rows::{Key, Rows},
};
use orphand_core::model::{
    ProcessId, Stdio,
    scene::{Address, Began, Called, Endpoint, SceneQuestion, SceneServer, Side},
};

#[derive(Default)]
pub(super) struct Joints {
    /// The processes that have a socket open, by inode number.
    owners: HashMap<u64, Vec<ProcessId>>,
    /// Those that keep it in an `io_uring`.
    rings: HashMap<u64, Vec<ProcessId>>,
    /// The ends that the holders of a socket have.
    of: HashMap<u64, BTreeSet<(u32, Side)>>,
    /// Connections whose other socket no table tells, by the socket that is known: only a pass may tell it.
    pub without_peer: BTreeSet<(u64, u32)>,
    /// Datagram sockets that are open to anybody unless the system gave their ports out to who only sends.
    pub perhaps_open: Vec<u64>,
    /// The wires, and the end that their server has.
    wires: HashMap<Stdio, BTreeSet<Side>>,
    /// The ports at which one of them shall listen, as their environments say: somebody knows that there is a server.
    pub ports: BTreeSet<u16>,
    /// The wires of the server to which a process belongs.
    servers: HashMap<ProcessId, [Stdio; 2]>,
    /// The oldest process of that server.
    oldest: HashMap<ProcessId, ProcessId>,
}

impl Joints {
    pub fn new(
        members: &[Member],
        ports: BTreeSet<u16>,
        questions: &[&SceneQuestion],
        asked: &BTreeSet<ProcessId>,
    ) -> Self {
        let mut joints = Self { ports, oldest: oldest(questions), ..Self::default() };
        for member in members {
            for inode in member.sockets() {
                insert(&mut joints.owners, inode, member.process);
            }
            for inode in &member.ends.in_rings {
                insert(&mut joints.rings, *inode, member.process);
            }
        }
        let is_asked = |server: &&SceneServer| server.processes.iter().any(|process| asked.contains(process));
        for server in questions.iter().flat_map(|question| &question.servers).filter(is_asked) {
            let of_server = server.processes.iter().map(|process| (*process, [server.stdin, server.stdout]));
            joints.servers.extend(of_server);
            for (wire, side) in [(server.stdin, Side::Reads), (server.stdout, Side::Writes)] {
                if wire.is_wire() {
                    joints.wires.entry(wire).or_default().insert(side);
                }
            }
        }
        joints
    }

    pub fn sockets(&self) -> HashSet<u64> {
        self.owners.keys().copied().chain(self.wires().filter_map(Stdio::try_as_socket)).collect()
    }

    /// Whether the process belongs to another server than the one with this wire.
    pub fn is_of_another(&self, process: ProcessId, wire: Stdio) -> bool {
        self.servers.get(&process).is_some_and(|wires| !wires.contains(&wire))
    }

    /// Whether processes of one server have these two sockets.
    pub fn are_of_one_server(&self, one: u64, other: u64) -> bool {
        let servers = |inode| self.holders(inode).iter().filter_map(|process| self.servers.get(process));
        servers(one).any(|server| servers(other).any(|other| other == server))
    }

    /// The oldest process of its server; itself, if it is of none.
    pub fn oldest(&self, process: ProcessId) -> ProcessId {
        self.oldest.get(&process).copied().unwrap_or(process)
    }

    pub fn holders(&self, inode: u64) -> &[ProcessId] {
        self.owners.get(&inode).map_or(&[], Vec::as_slice)
    }

    pub fn wires(&self) -> impl Iterator<Item = Stdio> {
        self.wires.keys().copied()
    }

    pub fn is_wire(&self, of: Stdio) -> bool {
        self.wires.contains_key(&of)
    }

    pub fn is_wire_of(&self, endpoint: u32) -> bool {
        let mut sockets = self.wires().filter_map(Stdio::try_as_socket);
        sockets.any(|inode| self.ends(inode).contains(&(endpoint, Side::Near)))
    }

    /// Whether this is the end of a wire that its server has.
    pub fn is_own(&self, of: Stdio, side: Side) -> bool {
        self.wires.get(&of).is_some_and(|sides| sides.contains(&side))
    }

    pub fn rings(&self, socket: u64) -> &[ProcessId] {
        self.rings.get(&socket).map_or(&[], Vec::as_slice)
    }

    /// Who holds this socket has this end.
    pub fn join(&mut self, socket: u64, endpoint: u32, side: Side) {
        self.of.entry(socket).or_default().insert((endpoint, side));
    }

    /// Enters a socket that anybody may call or send to, and that has no TCP port.
    pub fn open(&mut self, rows: &mut Rows<'_>, inode: u64, by: Address, called: Called) {
        self.open_at(rows, inode, (by, false), called);
    }

    /// The same of any socket. `chosen`: what the number of its TCP port says.
    pub fn open_at(
        &mut self,
        rows: &mut Rows<'_>,
        inode: u64,
        (by, chosen): (Address, bool),
        called: Called,
    ) {
        let at = rows.endpoint(Key::Open(inode), || Endpoint::Open { inode, by, called, chosen });
        self.join(inode, at, Side::Listens);
    }

    /// Enters a connection of these two sockets; 0 for one that has none here. `place` tells apart those that have no
    /// socket at one of their ends. Returns it, and whether it was entered before, from its other side.
    pub fn connection(
        &mut self,
        rows: &mut Rows<'_>,
        (near, far): (u64, u64),
        began: Began,
        place: u64,
    ) -> (u32, bool) {
        let key =
            Key::Connection(near.min(far), near.max(far), if near == 0 || far == 0 { place } else { 0 });
        let at = rows.endpoint(key, || Endpoint::Connection { near, far, began });
        if near != 0 && [Side::Near, Side::Far].iter().any(|side| self.ends(near).contains(&(at, *side))) {
            return (at, true);
        }
        for (socket, side) in
            [(near, Side::Near), (far, Side::Far)].into_iter().filter(|(socket, _)| *socket != 0)
        {
            self.join(socket, at, side);
        }
        (at, false)
    }

    /// Enters a connection whose other end no table tells.
    pub fn half(&mut self, rows: &mut Rows<'_>, near: u64) {
        let (at, _) = self.connection(rows, (near, 0), Began::Unknown, 0);
        self.without_peer.insert((near, at));
    }

    /// All sockets whose holders are asked for.
    pub fn joined(&self) -> impl Iterator<Item = u64> {
        self.of.keys().copied()
    }

    pub fn ends(&self, socket: u64) -> &BTreeSet<(u32, Side)> {
        static NONE: BTreeSet<(u32, Side)> = BTreeSet::new();
        self.of.get(&socket).unwrap_or(&NONE)
    }
}

fn insert(all: &mut HashMap<u64, Vec<ProcessId>>, socket: u64, process: ProcessId) {
    let of_it = all.entry(socket).or_default();
    // A process may have two descriptors of one socket.
    if of_it.last() != Some(&process) {
        of_it.push(process);
    }
}

//! TCP and UDP sockets, from the tables of a network namespace.

use std::{
    cell::LazyCell,
    collections::{BTreeSet, HashMap, HashSet},
    io,
    net::IpAddr,
};

use super::{
    direction::{Network, reached},
    joints::Joints,
    rows::{Key, Rows},
};
use crate::{
    host::{Endpoint as End, InternetSocket, ProcessDir, TcpState},
    source::kernel_side::{Caller, KernelSide},
};
use orphand_core::{
    model::{
        ProcessId,
        scene::{Address, Began, Called, Endpoint, Side},
    },
    recognise::is_chosen,
};

/// Enters the wanted sockets that are in the tables of this namespace. Returns all that are there.
pub(super) fn enter(
    rows: &mut Rows<'_>,
    joints: &mut Joints,
    dir: &ProcessDir,
    is_ours: bool,
    wanted: &HashSet<u64>,
    kernel: &KernelSide,
) -> io::Result<HashSet<u64>> {
    let (connections, datagrams) = (dir.tcp_sockets()?, dir.udp_sockets()?);
    let is_listener = |entry: &&InternetSocket| entry.state == TcpState::Listen;
    let listeners = connections.iter().filter(is_listener).map(|entry| (entry.local, entry.user)).collect();
    let network = Network::new(dir, is_ours, listeners);
    let called = add_tcp(rows, joints, &connections, &network, wanted, kernel);
    add_calls(rows, joints, dir, &connections, wanted, &called, kernel);
    let unconnected = |entry: &&InternetSocket| entry.remote.1 == 0;
    let open = datagrams.iter().filter(unconnected).map(|entry| (entry.local, entry.user)).collect();
    add_udp(rows, joints, &datagrams, [&network, &Network::new(dir, is_ours, open)], wanted);
    Ok(connections.iter().chain(&datagrams).map(|entry| entry.inode).collect())
}

/// Whether it listens, and is among those that are wanted.
fn is_wanted_listener(entry: &InternetSocket, wanted: &HashSet<u64>) -> bool {
    entry.state == TcpState::Listen && wanted.contains(&entry.inode)
}

/// Whether the other side of a connection, which has no socket here, has closed it: it was on this host, in this network, and one
/// that was only shut down would be in the table still.
const fn is_left(entry: &InternetSocket) -> bool {
    matches!(entry.state, TcpState::CloseWait) && entry.remote.0.is_loopback()
}

/// Whether a connection has begun, and is not over.
const fn has_begun(entry: &InternetSocket) -> bool {
    !matches!(entry.state, TcpState::Listen | TcpState::Close | TcpState::SynSent)
}

/// Enters the wanted connections. Returns the wanted sockets that listen, and were called a moment ago.
fn add_tcp(
    rows: &mut Rows<'_>,
    joints: &mut Joints,
    entries: &[InternetSocket],
    network: &Network<'_>,
    wanted: &HashSet<u64>,
    kernel: &KernelSide,
) -> HashSet<u64> {
    let mut ours: HashMap<End, Vec<u64>> = HashMap::new();
    for entry in entries.iter().filter(|entry| is_wanted_listener(entry, wanted)) {
        ours.entry(entry.local).or_default().push(entry.inode);
    }
    let listening = |end: End| reached(end).filter_map(|at| ours.get(&at)).flatten().copied();
    // If the other end is on this host, the table has the connection a second time, as seen from that end.
    let all = entries.iter().filter(|entry| has_begun(entry));
    let is_due = |e: &&InternetSocket| wanted.contains(&e.inode) || listening(e.local).next().is_some();
    let far: HashSet<(End, End)> = all.clone().filter(is_due).map(|e| (e.remote, e.local)).collect();
    let is_far = |e: &&InternetSocket| e.inode != 0 && far.contains(&(e.local, e.remote));
    let sockets: HashMap<(End, End), (u64, u32)> =
        all.clone().filter(is_far).map(|e| ((e.local, e.remote), (e.inode, e.user))).collect();
    let mut called = HashSet::new();
    let own_calls = LazyCell::new(|| kernel.begun());
    // Who listens on this host for one call alone may have had it made to him, to talk over it (a debugger, `--socket=PORT`). He has a
    // socket here, as nobody has whose port was translated to that of a container.
    let is_own_call = |entry: &InternetSocket, holders: &[ProcessId], is_here: bool| {
        (!is_here || network.has(entry.remote.0) == Some(false))
            && holders.iter().any(|holder| own_calls.contains(&(*holder, entry.local.1, entry.remote.1)))
    };
    for (place, entry) in (1..).zip(all) {
        let (local, remote) = (entry.local, entry.remote);
        let far = sockets.get(&(remote, local)).copied();
        let is_at_ours = listening(local).next().is_some();
        let is_ours = wanted.contains(&entry.inode);
        if entry.state == TcpState::TimeWait {
            called.extend(listening(local));
            // The side that closed first keeps this state: here the client's.
            if network.has(remote.0) != Some(false) {
                called.extend(listening(remote));
            }
        } else if is_ours || is_at_ours {
            let began = if is_at_ours {
                Began::Far
            } else if network.is_outgoing(local, remote, far.map(|(_, user)| user)) {
                Began::Near
            } else if network.listens(local) {
                Began::Far
            } else if is_own_call(entry, joints.holders(entry.inode), far.is_some()) {
                Began::Near
            } else {
                Began::Unknown
            };
            let near = if is_ours { entry.inode } else { 0 };
            let ends = (near, far.map_or(0, |(inode, _)| inode));
            let at = connect(rows, joints, ends, began, place, is_left(entry));
            // It is not accepted yet, or another process has it: it belongs to those who have the port, too.
            if !is_ours {
                for listener in listening(local) {
                    joints.join(listener, at, Side::Near);
                }
            }
        }
    }
    called
}

/// Enters who called the wanted sockets that listen, and whether anybody did.
fn add_calls(
    rows: &mut Rows<'_>,
    joints: &mut Joints,
    dir: &ProcessDir,
    entries: &[InternetSocket],
    wanted: &HashSet<u64>,
    called: &HashSet<u64>,
    kernel: &KernelSide,
) {
    let Some(network) = dir.network() else {
        rows.unread(None, format!("cannot read in which network {} is", dir.id()));
        return;
    };
    let held = rows.scene.processes.iter().filter(|row| row.held).map(|row| row.process);
    let held: HashSet<ProcessId> = held.collect();
    let all = entries.iter().filter(|entry| entry.state == TcpState::Listen).map(|entry| entry.inode);
    let all = LazyCell::new(|| all.collect::<HashSet<u64>>());
    let proc = rows.proc;
    // Who looked for a port that is free has one of its own by now.
    let has_found_another = |by: ProcessId| {
        let sockets = proc.process(by.pid).ok().and_then(|dir| dir.fd_table().ok());
        sockets.is_some_and(|table| table.sockets().any(|inode| all.contains(&inode)))
    };
    let counts = |caller: &Caller| !matches!(caller, Caller::Seeker(by) if has_found_another(*by));
    for entry in entries.iter().filter(|entry| is_wanted_listener(entry, wanted)) {
        let inode = entry.inode;
        // After the table: a call that was over before is among these.
        let callers: BTreeSet<Caller> = (joints.holders(inode).iter())
            .flat_map(|holder| {
                kernel.callers(network, entry.local.1, joints.oldest(*holder), held.contains(holder))
            })
            .filter(counts)
            .collect();
        let by: BTreeSet<ProcessId> = callers.iter().filter_map(|caller| rows.who_calls(*caller)).collect();
        for caller in &by {
            let at = rows.endpoint(Key::Call(inode, *caller), || Endpoint::Call);
            joints.join(inode, at, Side::Near);
            rows.caller(at, *caller);
        }
        let called = if callers.contains(&Caller::Anybody) {
            Called::Yes
        } else if called.contains(&inode) && by.is_empty() {
            // Of whom the witness knows nothing.
            Called::Yes
        } else if callers.contains(&Caller::Unknown) || joints.ports.contains(&entry.local.1) {
            Called::Unknown
        } else {
            Called::No
        };
        joints.open_at(rows, inode, (Address::Tcp, is_chosen(entry.local.1)), called);
    }
}

/// Enters a connection. Who has its other end is not seen if that has no socket here, and has not left it.
fn connect(
    rows: &mut Rows<'_>,
    joints: &mut Joints,
    ends: (u64, u64),
    began: Began,
    place: u64,
    is_left: bool,
) -> u32 {
    let (at, is_known) = joints.connection(rows, ends, began, place);
    if !is_known && ends.1 == 0 && !is_left {
        rows.anybody(at, Side::Far);
    }
    at
}

fn add_udp(
    rows: &mut Rows<'_>,
    joints: &mut Joints,
    entries: &[InternetSocket],
    [network, open_ones]: [&Network<'_>; 2],
    wanted: &HashSet<u64>,
) {
    let is_wanted = |entry: &&InternetSocket| wanted.contains(&entry.inode);
    // Those that are connected to one that is wanted, of each pair of ends the first: there may be hundreds of thousands.
    let near: HashSet<End> = entries.iter().filter(is_wanted).map(|entry| entry.local).collect();
    let far: HashMap<(End, End), u64> = (entries.iter().rev().filter(|entry| near.contains(&entry.remote)))
        .map(|entry| ((entry.local, entry.remote), entry.inode))
        .collect();
    for (place, entry) in (1..).zip(entries).filter(|(_, entry)| is_wanted(entry)) {
        let (local, remote, inode) = (entry.local, entry.remote, entry.inode);
        if remote.1 != 0 {
            // Whether it was bound and then connected to who asked first, only the ports can tell.
            let is_addressed = reached(remote).any(|at| far.contains_key(&(at, local)));
            let asks = open_ones.asks(local, remote, is_addressed);
            let began = if asks { Began::Near } else { Began::Unknown };
            let far = far.get(&(remote, local)).copied().unwrap_or_default();
            connect(rows, joints, (inode, far), began, place, false);
        } else if local.0.is_unspecified() && network.gives_out(local.1) == Some(true) {
            joints.perhaps_open.push(inode);
        } else {
            let by = if is_multicast_dns(local.0, local.1) { Address::MulticastDns } else { Address::Udp };
            joints.open(rows, inode, by, Called::Unknown);
        }
    }
}

/// Whether this is the address of multicast DNS. Each browser has a socket there that is open to everybody.
fn is_multicast_dns(address: IpAddr, port: u16) -> bool {
    port == 5353 && (address.is_unspecified() || address.is_multicast())
}

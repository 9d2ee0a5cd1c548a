//! Unix sockets, as `sock_diag(7)` lists them.
//!
//! An accepted socket has the name of its listener, and the side that called mostly has none: so the names tell who
//! called. Short connections to a named socket leave a trace only on its file ([`ProcessDir::is_untouched`]).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use super::{joints::Joints, rows::Rows};
use crate::host::{Proc, ProcessDir, UnixSocket, UnixSocketLine, UnixSockets, is_for_debuggers};
use orphand_core::model::{
    ProcessId, Stdio,
    scene::{Address, Began, Called, Side},
};

/// Enters the wanted sockets that are in this network namespace. Returns those.
pub(super) fn enter(
    rows: &mut Rows<'_>,
    joints: &mut Joints,
    asked: &mut UnixSockets,
    wanted: &HashSet<u64>,
) -> io::Result<HashSet<u64>> {
    let by_inode = |found: Vec<UnixSocket>| found.into_iter().map(|one| (one.inode, one));
    let sockets: BTreeMap<u64, UnixSocket> = by_inode(asked.among(wanted)?).collect();
    let peers = sockets.values().filter_map(|socket| socket.peer);
    let unknown: HashSet<u64> = peers.filter(|peer| *peer != 0 && !sockets.contains_key(peer)).collect();
    let others: BTreeMap<u64, UnixSocket> = by_inode(asked.among(&unknown)?).collect();
    let visited: HashSet<&[u8]> = sockets.values().filter_map(|socket| visited(joints, socket)).collect();
    let (proc, mut displays) = (rows.proc, HashMap::new());
    for socket in sockets.values() {
        let by_itself = socket.name.as_deref().is_some_and(|name| visited.contains(name));
        match socket.peer {
            // Whoever debugs it has a connection of his own.
            _ if socket.name.as_deref().is_some_and(is_for_debuggers) && socket.listens => {}
            _ if socket.listens => open(rows, joints, socket, by_itself),
            None if socket.connection || socket.name.is_none() || socket.is_named_by_the_system() => {}
            // Only the peer of a connected datagram socket can send to it.
            None => open(rows, joints, socket, false),
            Some(0) if !socket.connection => {}
            Some(0) => alone(rows, joints, socket),
            Some(peer) => {
                let far = sockets.get(&peer).or_else(|| others.get(&peer));
                joints.connection(rows, (socket.inode, peer), began(socket, far), 0);
                let Some(name) = far.and_then(|far| far.name.as_deref()) else { continue };
                for holder in joints.holders(socket.inode) {
                    if *displays.entry((*holder, name)).or_insert_with(|| is_display(proc, *holder, name)) {
                        rows.has_display(*holder);
                    }
                }
            }
        }
    }
    Ok(sockets.into_keys().collect())
}

/// Whether a display listens at this name: of X11 (Xserver(1)) or of Wayland, whose display may have any name and has a lock beside
/// it (`wl_socket_lock()`, libwayland). `PipeWire` has that from there, and no windows.
fn is_display(proc: &Proc, caller: ProcessId, name: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(name.strip_prefix(&[0]).unwrap_or(name)));
    let begins = |begin: &[u8]| path.file_name().is_some_and(|name| name.as_bytes().starts_with(begin));
    let has_lock = |dir: ProcessDir| dir.has_empty_lock(name);
    path.parent().is_some_and(|folder| folder.ends_with(".X11-unix"))
        || begins(b"wayland-")
        || !begins(b"pipewire-") && proc.identified(caller).is_ok_and(|dir| dir.is_some_and(has_lock))
}

/// Which side called, as the names of both tell. The other side is absent if it is in another network namespace, which
/// only a named socket can be reached from.
fn began(near: &UnixSocket, far: Option<&UnixSocket>) -> Began {
    let is_named = |socket: &UnixSocket| socket.name.is_some() && !socket.is_named_by_the_system();
    match (is_named(near), far.is_none_or(is_named)) {
        (false, false) => Began::Pair,
        (false, true) => Began::Near,
        (true, false) if near.connection => Began::Far,
        _ => Began::Unknown,
    }
}

/// The path at which this socket was accepted, if a process of the same server has the other end. Where another one has, who else
/// called there is not known.
fn visited<'s>(joints: &Joints, socket: &'s UnixSocket) -> Option<&'s [u8]> {
    let path = socket.name.as_deref().filter(|name| !name.starts_with(&[0]) && !socket.listens)?;
    let inside =
        socket.connection && socket.peer.is_some_and(|peer| joints.are_of_one_server(socket.inode, peer));
    inside.then_some(path)
}

/// A socket that anybody may call or send to. `by_itself` means that a connection that has a row of its own explains
/// why its file was touched.
fn open(rows: &mut Rows<'_>, joints: &mut Joints, socket: &UnixSocket, by_itself: bool) {
    let proc = rows.proc;
    let is_untouched = |dir: ProcessDir| dir.is_untouched(socket);
    let untouched = by_itself
        || joints
            .holders(socket.inode)
            .iter()
            .any(|one| proc.identified(*one).is_ok_and(|dir| dir.is_some_and(is_untouched)));
    let called = if untouched { Called::No } else { Called::Unknown };
    let inode = socket.inode;
    joints.open(rows, inode, Address::Unix, called);
    for client in socket.waiting.iter().copied().filter(|client| *client != 0) {
        let (at, _) = joints.connection(rows, (0, client), Began::Far, inode);
        joints.join(inode, at, Side::Near);
    }
}

/// A socket whose peer was closed, or waits to be accepted: then nobody tells which listener it waits at. Without a name and
/// a peer it was one of a pair, as far as anybody knows: that somebody called must be seen.
fn alone(rows: &mut Rows<'_>, joints: &mut Joints, socket: &UnixSocket) {
    let is_pair = socket.hung_up() && socket.name.is_none();
    let began = if is_pair { Began::Pair } else { Began::Near };
    let (at, _) = joints.connection(rows, (socket.inode, 0), began, 0);
    if !socket.hung_up() {
        rows.unreadable(at, Side::Far);
    }
}

/// Does the same from `/proc/PID/net/unix`, which tells neither peers nor files. Anybody in the namespace may add lines about
/// any socket, whose name has line ends: a line is a reason to keep a server, and none to look at a socket no further.
pub(super) fn enter_by_name(
    rows: &mut Rows<'_>,
    joints: &mut Joints,
    dir: &ProcessDir,
) -> io::Result<HashSet<u64>> {
    let lines = dir.unix_sockets()?;
    let is_ours = |line: &&UnixSocketLine| {
        !joints.holders(line.inode).is_empty() || joints.is_wire(Stdio::Socket(line.inode))
    };
    let ours: Vec<UnixSocketLine> = lines.iter().filter(is_ours).copied().collect();
    let mut entered = HashSet::new();
    for UnixSocketLine { inode, is_named, state } in ours {
        match state {
            UnixSocketLine::CONNECTED => joints.half(rows, inode),
            // With a name it is a listener or a datagram socket.
            UnixSocketLine::UNCONNECTED if is_named => {
                joints.open(rows, inode, Address::Unix, Called::Unknown);
            }
            _ => continue,
        }
        entered.insert(inode);
    }
    Ok(entered)
}

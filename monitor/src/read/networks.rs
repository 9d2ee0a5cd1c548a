//! The sockets of the processes that were asked about, one network namespace after the other, but only those that these
//! processes live in.

use std::{
    collections::{BTreeMap, HashSet},
    io,
};

use rustix::io::Errno;

use super::{
    descriptors::Looked,
    inet::{self, Lately},
    joints::Joints,
    process::Member,
    rows::{Key, Rows},
    unix,
    unlisted::{self, Kind},
};
use crate::host::{Proc, ProcessDir, UnixSockets};
use orphand_core::model::scene::{Address, Began, Called, Endpoint, Side};

/// Enters the sockets of these processes.
pub(super) fn read(rows: &mut Rows<'_>, members: &[Member], joints: &mut Joints, lately: &Lately<'_>) {
    let sockets = joints.sockets();
    if sockets.is_empty() {
        return;
    }
    let mut listed = HashSet::new();
    let found = of(rows.proc, members.iter().map(|member| &member.looked));
    let networks = found.unwrap_or_else(|why| {
        rows.unread(None, why);
        BTreeMap::new()
    });
    // A wire that nobody has any more is looked up where it most likely is.
    if !networks.values().any(|(_, is_ours)| *is_ours) {
        match UnixSockets::here().and_then(|mut asked| unix::enter(rows, joints, &mut asked, &sockets)) {
            Ok(known) => listed.extend(known),
            Err(error) => rows.unread(None, format!("cannot list the unix sockets: {error}")),
        }
    }
    for (dir, is_ours) in networks.into_values() {
        let asked = if is_ours {
            UnixSockets::here()
        } else {
            dir.network_namespace().map_err(io::Error::from).and_then(UnixSockets::inside)
        };
        // Entering another namespace takes CAP_SYS_ADMIN. Without it, /proc lists the sockets but not their peers.
        let known =
            asked.and_then(|mut asked| unix::enter(rows, joints, &mut asked, &sockets)).or_else(|error| {
                unix::enter_by_name(rows, joints, &dir).map_err(|other| format!("{error}; {other}"))
            });
        match known {
            Ok(known) => listed.extend(known),
            Err(why) => {
                rows.unread(None, format!("cannot list the unix sockets that {} uses: {why}", dir.id()));
            }
        }
        if sockets.iter().any(|inode| !listed.contains(inode)) {
            match inet::enter(rows, joints, &dir, is_ours, &sockets, lately) {
                Ok(known) => listed.extend(known),
                Err(error) => {
                    rows.unread(None, format!("cannot list the connections that {} uses: {error}", dir.id()));
                }
            }
        }
    }
    enter_unlisted(rows, members, joints, &listed);
    enter_rest_of_copies(rows, members, joints);
}

/// Enters what other sockets a copy has: whatever comes through one may wake it, even if nobody can serve others through
/// such a socket.
fn enter_rest_of_copies(rows: &mut Rows<'_>, members: &[Member], joints: &mut Joints) {
    for Member { looked, .. } in members.iter().filter(|member| member.rests) {
        for inode in looked.table.sockets().chain(looked.in_rings.iter().copied()) {
            if joints.ends(inode).is_empty() {
                let open = Endpoint::Open { inode, by: Address::Other, called: Called::Unknown };
                let at = rows.endpoint(Key::Open(inode), || open);
                joints.join(inode, at, Side::Listens);
            }
        }
    }
}

/// Enters the sockets that no table lists.
fn enter_unlisted(rows: &mut Rows<'_>, members: &[Member], joints: &mut Joints, listed: &HashSet<u64>) {
    let looked = members.iter().map(|member| &member.looked);
    for (inode, kind) in unlisted::of(rows.proc, looked, listed) {
        match kind {
            Kind::Open => {
                let by = Address::Other;
                let open = Endpoint::Open { inode, by, called: Called::Unknown };
                let at = rows.endpoint(Key::Open(inode), || open);
                joints.join(inode, at, Side::Listens);
            }
            Kind::Connected => {
                let connection = Endpoint::Connection { near: inode, far: 0, began: Began::Unknown };
                let at = rows.endpoint(Key::Connection(0, inode, 0), || connection);
                joints.join(inode, at, Side::Near);
                joints.without_peer(inode, at);
            }
        }
    }
}

/// The network namespaces of the processes that have sockets: one process in each, and whether the namespace is our
/// own.
pub(crate) fn of<'l>(
    proc: &Proc,
    looked: impl Iterator<Item = &'l Looked>,
) -> Result<BTreeMap<Vec<u8>, (ProcessDir, bool)>, String> {
    let mut networks = BTreeMap::new();
    for one in looked.filter(|one| one.table.sockets().next().is_some() || !one.in_rings.is_empty()) {
        let found = proc
            .identified(one.process)
            .and_then(|dir| dir.map(|dir| dir.network().map(|network| (network, dir))).transpose());
        match found {
            Ok(Some((network, dir))) => _ = networks.entry(network).or_insert((dir, false)),
            Ok(None) | Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => {
                return Err(format!("cannot read the network namespace of {}: {errno}", one.process));
            }
        }
    }
    if !networks.is_empty() {
        let ours =
            proc.our_network().map_err(|errno| format!("cannot read our network namespace: {errno}"))?;
        if let Some((_, is_ours)) = networks.get_mut(&ours) {
            *is_ours = true;
        }
    }
    Ok(networks)
}

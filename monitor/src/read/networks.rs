//! The sockets of the processes that were asked about, one network namespace after the other, but only those that these
//! processes live in.

use std::{
    collections::{BTreeMap, HashSet},
    io,
};

use rustix::io::Errno;

use super::{inet, joints::Joints, process::Member, rows::Rows, unix, unlisted};
use crate::{
    host::{Proc, ProcessDir, UnixSockets},
    source::kernel_side::KernelSide,
};

pub(super) fn read(rows: &mut Rows<'_>, members: &[Member], joints: &mut Joints, kernel: &KernelSide) {
    let sockets = joints.sockets();
    if sockets.is_empty() {
        return;
    }
    let mut listed = HashSet::new();
    let found = namespaces(rows.proc, members);
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
            dir.open_file("ns/net").map_err(io::Error::from).and_then(UnixSockets::inside)
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
            match inet::enter(rows, joints, &dir, is_ours, &sockets, kernel) {
                Ok(known) => listed.extend(known),
                Err(error) => {
                    rows.unread(None, format!("cannot list the connections that {} uses: {error}", dir.id()));
                }
            }
        }
    }
    unlisted::enter(rows, members, joints, &listed);
}

/// The network namespaces of the processes that have sockets: one process in each, and whether the namespace is our
/// own.
fn namespaces(proc: &Proc, members: &[Member]) -> Result<BTreeMap<Vec<u8>, (ProcessDir, bool)>, String> {
    let mut networks = BTreeMap::new();
    for process in members.iter().filter(|one| one.sockets().next().is_some()).map(|one| one.process) {
        let found = proc
            .identified(process)
            .and_then(|dir| dir.map(|dir| dir.link("ns/net").map(|network| (network, dir))).transpose());
        match found {
            Ok(Some((network, dir))) => _ = networks.entry(network).or_insert((dir, false)),
            Ok(None) | Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => return Err(format!("cannot read the network namespace of {process}: {errno}")),
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

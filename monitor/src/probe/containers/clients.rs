//! Who else may be a client of a container engine: its name says so, and it can reach the engine.
//!
//! Anybody may give a process the name and the arguments of a client. Only who may open the engine's socket can be one,
//! or who is connected to it all the same. Invariant: what cannot be read counts as one who can.

use std::{
    collections::{BTreeSet, HashSet},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, getxattr, openat},
    io::Errno,
    process::{Gid, getegid, geteuid, getgroups},
};

use super::{has_name_of_client, resembles_client};
use crate::{
    helper,
    host::{Proc, TcpState, UNANSWERED, UnixSockets},
    os::own,
    probe::Probe,
    source::kernel_side::Beside,
};
use orphand_core::model::{OtherClient, ProcessId, Stdio};

const MOST: usize = 256;
/// The most connections to an engine whose holders are asked for.
const CONNECTIONS: usize = 1000;

pub(super) struct Door {
    /// The engine's socket, opened with `O_PATH`: nothing is connected yet.
    pub(super) socket: OwnedFd,
    stat: Stat,
    /// It has an access list, which is not read.
    listed: bool,
}

impl Door {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let failed = |errno: Errno| format!("cannot open {}: {errno}", path.display());
        let socket = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let stat = fstat(&socket).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(format!("{} is no socket", path.display()));
        }
        let mut none = [0_u8; 0];
        let list = getxattr(own::path_of(&socket), "system.posix_acl_access", &mut none);
        let listed = !matches!(list, Err(Errno::NODATA | Errno::OPNOTSUPP) | Ok(0));
        Ok(Self { socket, stat, listed })
    }

    /// As whom a helper asks, if it may not as ourselves: in the group of the socket's file. Who names the engine in the configuration
    /// wants it asked, and the helper does nothing else.
    pub(super) fn asker(&self) -> Option<(u32, u32)> {
        if self.listed || !helper::can_be_others() {
            return None;
        }
        let uid = geteuid().as_raw();
        let mut groups: Vec<u32> = getgroups().ok()?.into_iter().map(Gid::as_raw).collect();
        groups.push(getegid().as_raw());
        let Stat { st_uid, st_gid, st_mode, .. } = self.stat;
        joins(st_mode, (st_uid, st_gid), uid, &groups).then_some((uid, st_gid))
    }

    /// Its file as the kernel's list of unix sockets names it, which has the lower half of the inode number.
    pub(super) fn file(&self) -> (u32, u64) {
        let inode = u32::try_from(self.stat.st_ino & u64::from(u32::MAX)).unwrap_or_default();
        (inode, self.stat.st_dev)
    }

    /// Whether this process, if it `may_be` a client by the name that the kernel has for it, can open it. One that has
    /// ended cannot.
    fn lets_in(&self, proc: &Proc, pid: u32, may_be: impl Fn(&str) -> bool) -> bool {
        match proc.rights(pid, self.stat.st_uid) {
            Ok(rights) => {
                may_be(&String::from_utf8_lossy(&rights.name))
                    && (self.listed || rights.may_write(&self.stat))
            }
            Err(Errno::NOENT | Errno::SRCH) => false,
            Err(_) => true,
        }
    }
}

/// Whether a socket of this mode, user and group can be written to by who joins its group, and not as he is.
fn joins(mode: u32, (user, group): (u32, u32), uid: u32, groups: &[u32]) -> bool {
    let (of_group, of_others) =
        (Mode::from_raw_mode(mode) & Mode::WGRP, Mode::from_raw_mode(mode) & Mode::WOTH);
    !of_group.is_empty() && of_others.is_empty() && user != uid && !groups.contains(&group)
}

impl Probe {
    /// The other processes of the host that may be clients of this engine; `None` if they are too many to list, or if one
    /// cannot be told.
    pub(super) fn other_clients(&self, engine: &str, client: ProcessId) -> Option<Vec<OtherClient>> {
        let door = self.engines.open(engine).ok()?;
        let (mut found, mut outside) = (Vec::new(), Vec::new());
        for pid in self.proc.pids().ok()? {
            match self.proc.process(pid) {
                Ok(dir) => {
                    let image = dir.image();
                    if dir.id() == client || !resembles_client(&image) {
                        continue;
                    }
                    let one = OtherClient { process: dir.id(), image };
                    if door.lets_in(&self.proc, pid, |_| true) {
                        found.push(one);
                    } else {
                        outside.push(one);
                    }
                }
                Err(Errno::NOENT | Errno::SRCH) => {}
                // It does not answer.
                Err(UNANSWERED) if !door.lets_in(&self.proc, pid, has_name_of_client) => {}
                Err(_) => return None,
            }
            if found.len() > MOST {
                return None;
            }
        }
        if !outside.is_empty() {
            let connected = self.connected(&door);
            let reaches = |one: &OtherClient| connected.as_ref().is_none_or(|all| all.contains(&one.process));
            found.extend(outside.into_iter().filter(reaches));
        }
        (found.len() <= MOST).then_some(found)
    }

    /// Who is connected to the engine through its socket; `None` if that may be anybody: it is not seen, or the engine
    /// listens for TCP, too.
    fn connected(&self, door: &Door) -> Option<BTreeSet<ProcessId>> {
        let file = Some(door.file());
        let all = UnixSockets::here().ok()?.all(|socket| socket.file == file).ok()?;
        let (mut listeners, mut clients) = (HashSet::new(), HashSet::new());
        for socket in all {
            if socket.listens {
                listeners.insert(Stdio::Socket(socket.inode));
                clients.extend(socket.waiting.into_iter().map(Stdio::Socket));
            } else {
                clients.extend(socket.peer.filter(|peer| *peer > 0).map(Stdio::Socket));
            }
        }
        let wires: Vec<Stdio> = listeners.iter().chain(&clients).copied().collect();
        if listeners.is_empty() || wires.len() > CONNECTIONS {
            return None;
        }
        let ends = self.kernel.pass(&wires, &Beside::default()).ok()?;
        let holders = |of: &HashSet<Stdio>| -> BTreeSet<ProcessId> {
            ends.iter().filter(|end| of.contains(&end.of)).map(|end| end.process).collect()
        };
        let engine = holders(&listeners);
        // The service manager may hold the socket, too, and listens for others.
        let mut engine = engine.into_iter().filter(|one| one.pid != 1);
        if engine.any(|one| self.listens_for_tcp(one) != Some(false)) {
            return None;
        }
        Some(holders(&clients))
    }

    /// `None` if that is not seen.
    fn listens_for_tcp(&self, process: ProcessId) -> Option<bool> {
        let dir = self.proc.identified(process).ok()??;
        let table = dir.fd_table().ok().filter(|table| !table.cut)?;
        let own: HashSet<u64> = table.sockets().collect();
        let sockets = dir.tcp_sockets().ok()?;
        Some(sockets.iter().any(|one| one.state == TcpState::Listen && own.contains(&one.inode)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_engines_socket_is_joined_where_it_takes_that() {
        let (user, groups) = (990, [990]);
        // As dockerd makes it: 0660 root:docker; and podman's: root:root.
        assert!(joins(0o140_660, (0, 110), user, &groups));
        assert!(joins(0o140_660, (0, 0), user, &groups));
        for (mode, of, uid, groups, why) in [
            (0o140_660, (0, 110), 0, &[0][..], "root's own"),
            (0o140_660, (0, 110), user, &[990, 110][..], "a member already"),
            (0o140_666, (0, 110), user, &groups[..], "everybody may"),
            (0o140_600, (0, 110), user, &groups[..], "the group may not"),
        ] {
            assert!(!joins(mode, of, uid, groups), "{why}");
        }
    }
}

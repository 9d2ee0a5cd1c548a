//! The state of a server's wire: which processes have its other end. It is read from outside the server and
//! without side effects.
//!
//! The code first asks whether the wire is hung up. That costs microseconds and is exact. For a pipe it asks
//! the pipe (`pipe`), for a unix socket `sock_diag`, which tells whether the peer was closed. The holders of
//! the other end come from a pass of the kernel over all open files (`pass`), where there are passes.
//! Otherwise they come from /proc (`holders`), which does not list every reference, so an unseen process may
//! have the end too.
//!
//! A server that has closed its own end has no wire any more. No process can talk to it through the remaining
//! ends.

use std::collections::BTreeSet;

use super::{
    Probe, holders, locked,
    pass::{self, Told},
    pipe::{self, Fifo, Said, Side},
    server::Looked,
};
use crate::host::{Target, UnixSocket, UnixSockets};
use orphand_core::model::{Holder, ProcessId, Stdio, WireState};

/// What an inspection of a wire found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight {
    pub state: WireState,
    /// Why the result is incomplete; `None` if it is complete.
    pub blind: Option<String>,
}

impl Sight {
    const fn clear(state: WireState) -> Self {
        Self { state, blind: None }
    }

    fn blind(why: impl Into<String>) -> Self {
        Self { state: WireState::Unknown, blind: Some(why.into()) }
    }

    /// The holders that /proc lists. There may be more.
    fn held(holders: Vec<Holder>) -> Self {
        Self::clear(WireState::Held { holders, unseen: true })
    }
}

/// A server whose wires are inspected.
pub(super) struct Wired<'a> {
    /// The living processes of the server, with their open files.
    pub looked: &'a [Looked],
    /// Whether `looked` has all processes of the server and all their files.
    pub complete: bool,
    /// The wires of the server: standard input and output.
    pub wires: [Stdio; 2],
    /// Whether a FIFO that no process has open, but that still exists under its name, counts as held. The
    /// next client may open it.
    pub lasting: bool,
    /// Returns the wires that will be asked about next.
    pub others: &'a dyn Fn() -> Vec<Stdio>,
}

impl Probe {
    /// The state of the server's wire on this side.
    pub(super) fn wire(&self, server: &Wired<'_>, side: Side) -> Sight {
        let [stdin, stdout] = server.wires;
        match if side == Side::Reads { stdin } else { stdout } {
            Stdio::Pipe(inode) => self.pipe(server, inode, side),
            Stdio::Socket(inode) => self.socket(server, inode, side),
            // A server without a wire has no wire that could hang up.
            _ => Sight::clear(WireState::Unknown),
        }
    }

    fn pipe(&self, server: &Wired<'_>, inode: u64, side: Side) -> Sight {
        let wire = Stdio::Pipe(inode);
        let (mut failure, mut there) = (None, None);
        for Looked { process, table, .. } in server.looked {
            let dir = match self.proc.identified(*process) {
                Ok(Some(dir)) => dir,
                Ok(None) => continue,
                Err(errno) => {
                    failure = Some(format!("cannot read process {process} in /proc: {errno}"));
                    continue;
                }
            };
            for number in pipe::descriptors(&dir, table, inode) {
                match pipe::ask(&dir, number, inode, side) {
                    Ok(Some(Said::Waits)) if server.lasting => {
                        return Sight::clear(WireState::Held { holders: Vec::new(), unseen: true });
                    }
                    Ok(Some(Said::HungUp | Said::Waits)) => return Sight::clear(WireState::HungUp),
                    Ok(Some(Said::Held(fifo))) => there = Some(fifo),
                    // The descriptor was closed, its process has ended, or it is the other end of the same
                    // pipe.
                    Ok(None) => {}
                    Err(errno) => {
                        failure = Some(format!("cannot poll descriptor {number} of {process}: {errno}"));
                    }
                }
            }
        }
        if let Some(sight) = self.told(server, wire, side, there.is_some()) {
            return sight;
        }
        match (there, failure, side) {
            (Some(Some(fifo)), ..) => self.fifo(inode, &fifo, side),
            // A process that may not take a duplicate can still search for the holders.
            (Some(None), ..) | (None, Some(_), Side::Writes) => self.held(wire, side),
            (None, Some(failure), Side::Reads) => Sight::blind(failure),
            (None, None, _) => self.lost(server, wire, side),
        }
    }

    fn fifo(&self, inode: u64, fifo: &Fifo, side: Side) -> Sight {
        match holders::fifo_holders(&self.proc, inode, fifo, side) {
            Ok(holders) => Sight::held(holders),
            Err(error) => Sight::blind(error.to_string()),
        }
    }

    fn socket(&self, server: &Wired<'_>, inode: u64, side: Side) -> Sight {
        let wire = Stdio::Socket(inode);
        let found = self.diag(inode, server.looked);
        if let Ok(Some(socket)) = &found
            && socket.hung_up()
        {
            return Sight::clear(WireState::HungUp);
        }
        let there = server.looked.iter().any(|one| one.table.sockets().any(|socket| socket == inode));
        if let Some(sight) = self.told(server, wire, side, there) {
            return sight;
        }
        match found {
            _ if !there => self.lost(server, wire, side),
            Ok(Some(UnixSocket { peer: Some(peer), .. })) if peer != 0 => {
                self.held(Stdio::Socket(peer), side)
            }
            // The peer is not accepted yet, or it is a datagram socket without a peer, or not a unix socket,
            // or a socket of a network namespace that is neither ours nor the server's.
            Ok(_) => Sight::clear(WireState::Unknown),
            // We may never enter its network namespace. Another inspection would not help.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Sight::clear(WireState::Unknown)
            }
            Err(error) => Sight::blind(format!("cannot ask the kernel about socket {inode}: {error}")),
        }
    }

    /// Looks the socket up in our network namespace, and in those of the server.
    pub(super) fn diag(&self, inode: u64, server: &[Looked]) -> std::io::Result<Option<UnixSocket>> {
        if let Some(found) = UnixSockets::here()?.find(inode)? {
            return Ok(Some(found));
        }
        let mut looked = BTreeSet::from([self.proc.our_network()?]);
        let mut failure = None;
        for one in server {
            let Ok(Some(dir)) = self.proc.identified(one.process) else { continue };
            let (Ok(name), Ok(namespace)) = (dir.network(), dir.network_namespace()) else { continue };
            if looked.insert(name) {
                match UnixSockets::inside(namespace).and_then(|mut sockets| sockets.find(inode)) {
                    Ok(None) => {}
                    Ok(found) => return Ok(found),
                    Err(error) => failure = Some(error),
                }
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// The answer of a kernel pass; `None` if there is no pass. `there` tells whether the server had its own
    /// end a moment ago.
    fn told(&self, server: &Wired<'_>, wire: Stdio, side: Side, there: bool) -> Option<Sight> {
        let inside: Vec<ProcessId> = server.looked.iter().map(|one| one.process).collect();
        let ask = |inside: &[ProcessId]| {
            let told = self.ask_passes(|passes| {
                passes.ask(&server.wires, server.others, |ends| match wire {
                    Stdio::Socket(_) => pass::judge_socket(ends, wire, inside),
                    _ => pass::judge_pipe(ends, wire, side, inside),
                })
            })?;
            // /proc tells less, but works when the kernel side does not.
            told.inspect_err(|why| tracing::debug!("no pass over the open files: {why}")).ok()
        };
        let mut told = ask(&inside)?;
        if let Told::Lost(sharers) = &told {
            if there || !server.complete {
                return Some(Sight::clear(WireState::Unknown));
            }
            let below = self.below(sharers, &inside);
            if below.is_empty() {
                return Some(Sight::clear(WireState::HungUp));
            }
            told = ask(&[inside, below].concat())?;
        }
        Some(Sight::clear(match told {
            Told::HungUp => WireState::HungUp,
            Told::Unknown | Told::Lost(_) => WireState::Unknown,
            Told::Held { by, unseen } => {
                let (holders, missing) = holders::describe(&self.proc, by);
                WireState::Held { holders, unseen: unseen || missing }
            }
        }))
    }

    /// The state of a wire whose server end no process of the server has, as far as the descriptor tables
    /// tell.
    fn lost(&self, server: &Wired<'_>, wire: Stdio, side: Side) -> Sight {
        // A thread may have a descriptor table of its own (unshare(2)), and io_uring may keep a file open.
        // `/proc/PID/fd` shows neither.
        if !server.complete || server.looked.iter().any(|one| self.may_hide(one.process, wire)) {
            return Sight::clear(WireState::Unknown);
        }
        let inside: Vec<ProcessId> = server.looked.iter().map(|one| one.process).collect();
        let ask = |index: &holders::Index| (index.sharers(&self.proc, wire, side), index.blind.is_some());
        match self.with_index(Age::Fresh, ask) {
            Ok((_, true)) => Sight::clear(WireState::Unknown),
            Ok((sharers, false)) if self.below(&sharers, &inside).is_empty() => {
                Sight::clear(WireState::HungUp)
            }
            // The peer of a socket is not known here.
            Ok(_) if matches!(wire, Stdio::Socket(_)) => Sight::clear(WireState::Unknown),
            Ok(_) => self.held(wire, side),
            Err(why) => Sight::blind(why),
        }
    }

    /// Those of `sharers` that descend from a process `inside`: children that the engine has not heard of
    /// yet.
    fn below(&self, sharers: &[ProcessId], inside: &[ProcessId]) -> Vec<ProcessId> {
        let descends = |process: &&ProcessId| match self.proc.identified(**process) {
            Ok(Some(dir)) => self.proc.ancestors(&dir).any(|above| inside.contains(&above.id())),
            Ok(None) => false,
            Err(_) => true,
        };
        sharers.iter().filter(descends).copied().collect()
    }

    /// Whether a process may have the wire open where `/proc/PID/fd` does not show it.
    fn may_hide(&self, process: ProcessId, wire: Stdio) -> bool {
        let Ok(Some(dir)) = self.proc.identified(process) else { return false };
        let Ok(tables) = dir.thread_tables() else { return dir.still_alive() };
        let is_it = |target: &Target| match target {
            Target::Pipe(inode) => wire == Stdio::Pipe(*inode),
            Target::Socket(inode) => wire == Stdio::Socket(*inode),
            Target::Path(path) => path == b"anon_inode:[io_uring]",
        };
        tables.iter().any(|table| table.cut || table.fds.iter().any(|fd| is_it(&fd.target)))
    }

    /// The holders of the other end of a wire that is not hung up.
    fn held(&self, end: Stdio, side: Side) -> Sight {
        for age in [Age::Fresh, Age::New] {
            match self.with_index(age, |index| (index.holders(&self.proc, end, side), index.blind.clone())) {
                Ok((holders, _)) if !holders.is_empty() => return Sight::held(holders),
                Err(why) => return Sight::blind(why),
                // The fresh index names no holder. Then a process that could not be read may be the holder.
                Ok((_, blind)) if age == Age::New => return Sight { blind, ..Sight::held(Vec::new()) },
                Ok(_) => {}
            }
        }
        Sight::held(Vec::new())
    }

    /// Asks the index of all holders.
    pub(super) fn with_index<T>(
        &self,
        age: Age,
        ask: impl FnOnce(&holders::Index) -> T,
    ) -> Result<T, String> {
        let kept = locked(&self.holders).take();
        let index = match kept.filter(|index| age == Age::Fresh && index.is_fresh()) {
            Some(index) => index,
            None => holders::Index::take(&self.proc).map_err(|error| error.to_string())?,
        };
        let told = ask(&index);
        *locked(&self.holders) = Some(index);
        Ok(told)
    }
}

/// How old an index of all holders may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Fresh,
    New,
}

#[cfg(test)]
mod tests;

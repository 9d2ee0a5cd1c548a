//! podman's conmon: which container a client of podman is attached to, and who else is.
//!
//! podman has no daemon that its clients talk to. Each container has a conmon, the parent of its first process. conmon
//! holds the standard streams, and a client is connected to a socket of that conmon for as long as it is attached. The
//! kernel names the peer of every connection, so this tells the container of a client for certain, whatever its
//! arguments say, and everybody else who is attached. Invariant: a conmon that is not seen whole is none.

use std::collections::HashSet;

use super::{Found, Question, is_inside};
use crate::{
    host::{ProcessDir, UnixSocket, UnixSockets},
    probe::Probe,
};
use orphand_core::{
    model::{ContainerQuery, ProcessId, text::base},
    recognise::is_container_id,
};

/// The name that a conmon has in the kernel's records. It only limits the search.
const CONMON: &str = "conmon";
/// The most bytes of its command line that are read; its container's id is at the beginning.
const COMMAND_LINE: usize = 4096;

#[derive(Debug)]
pub(super) struct Attached {
    pub monitor: ProcessId,
    /// The container, as the conmon's command line has it.
    id: String,
    /// Whether somebody else is attached, or may be.
    pub shared: bool,
}

impl Probe {
    /// The conmon that the client is attached to; `None` if there is none or more than one, or if it is not seen whole.
    pub(super) fn attached(&self, client: ProcessId) -> Option<Attached> {
        let own = self.proc.identified(client).ok()??.fd_table().ok()?;
        let own: HashSet<u64> = own.sockets().collect();
        let mut unix = UnixSockets::here().ok()?;
        let peers = peers(&unix.among(&own).ok()?);
        if peers.is_empty() {
            return None;
        }
        let mut found = None;
        for pid in self.proc.pids().ok()? {
            let Ok(dir) = self.proc.process(pid) else { continue };
            // Only root's podman is asked.
            let may_be = dir.id().start >= client.start && dir.uid() == Ok(0);
            if !may_be || base(&dir.exe()) != CONMON {
                continue;
            }
            // One that ended meanwhile is not the one.
            let Ok(table) = dir.fd_table() else { continue };
            let sockets: HashSet<u64> = table.sockets().collect();
            if sockets.is_disjoint(&peers) {
                continue;
            }
            if table.cut || found.is_some() {
                return None;
            }
            let shared = is_shared(&unix.among(&sockets).ok()?, &own)?;
            found = Some(Attached { monitor: dir.id(), id: monitored_by(&dir)?, shared });
        }
        found
    }

    /// The container of a client of podman, with its first process. podman tells which process that is, and the host
    /// that its parent is the conmon that the client is attached to.
    pub(super) fn monitored(&self, query: &ContainerQuery) -> Option<(Found, ProcessDir, Attached)> {
        let attached = self.attached(query.client)?;
        let question = Question::Inspect { id: attached.id.clone() };
        let found = self.engines.found(&query.started.engine, &question)?;
        let [found] = <[Found; 1]>::try_from(found).ok()?;
        let first = self.proc.process(found.pid).ok()?;
        let fits = found.id == attached.id
            && found.is_fed(true)
            && first.stat().ppid == attached.monitor.pid
            && first.id().start >= attached.monitor.start
            && is_inside(&first, &found.id)
            && matches!(self.proc.identified(attached.monitor), Ok(Some(_)));
        fits.then_some((found, first, attached))
    }
}

/// The container that this process is the conmon of, if it is one. Anybody may give a program that name.
pub(super) fn monitored_by(dir: &ProcessDir) -> Option<String> {
    if base(&dir.exe()) != CONMON {
        return None;
    }
    container_of(&dir.command_line(COMMAND_LINE).ok()?.0)
}

fn peers(sockets: &[UnixSocket]) -> HashSet<u64> {
    let connected = sockets.iter().filter(|socket| socket.connection);
    connected.filter_map(|socket| socket.peer.filter(|peer| *peer > 0)).collect()
}

/// Whether anybody but the holder of `own` is connected to the socket to which `own` are, or waits to be. `sockets` are
/// those of the conmon. `None` if that is not seen.
fn is_shared(sockets: &[UnixSocket], own: &HashSet<u64>) -> Option<bool> {
    let is_own = |peer: u64| own.contains(&peer);
    let mine = sockets.iter().find(|socket| socket.connection && socket.peer.is_some_and(is_own))?;
    let file = mine.file?;
    let mut beside = sockets.iter().filter(|socket| socket.file == Some(file));
    Some(beside.any(|socket| {
        let attached = socket.peer.is_some_and(|peer| peer > 0 && !is_own(peer));
        attached || !socket.waiting.is_empty()
    }))
}

/// The container in the command line of a conmon: the word after `-c`.
fn container_of(line: &[u8]) -> Option<String> {
    let mut words = line.split(|byte| *byte == 0).skip_while(|word| *word != b"-c");
    let id = std::str::from_utf8(words.nth(1)?).ok()?;
    is_container_id(id).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(peer: u64) -> UnixSocket {
        UnixSocket { peer: Some(peer), connection: true, file: Some((1, 2)), ..UnixSocket::default() }
    }

    fn listener(waiting: &[u64]) -> UnixSocket {
        UnixSocket { peer: None, listens: true, waiting: waiting.to_vec(), ..socket(0) }
    }

    #[test]
    fn who_is_attached() {
        let own = HashSet::from([7, 8]);
        let elsewhere = UnixSocket { file: Some((3, 4)), ..socket(9) };
        let shared = |sockets: &[UnixSocket]| is_shared(sockets, &own);
        assert_eq!(shared(&[listener(&[]), socket(7), elsewhere.clone()]), Some(false));
        // Somebody else; one who has gone; one who is not accepted yet.
        assert_eq!(shared(&[listener(&[]), socket(7), socket(9)]), Some(true));
        assert_eq!(shared(&[listener(&[]), socket(9), socket(7)]), Some(true));
        assert_eq!(shared(&[listener(&[]), socket(7), socket(0)]), Some(false));
        assert_eq!(shared(&[listener(&[11]), socket(7)]), Some(true));
        // The client is connected to nothing here, or to a socket without a file.
        assert_eq!(shared(&[listener(&[]), socket(9)]), None);
        assert_eq!(shared(&[UnixSocket { file: None, ..socket(7) }]), None);
        assert_eq!(shared(&[]), None);
    }

    #[test]
    fn the_ends_of_connections() {
        let datagram = UnixSocket { connection: false, ..socket(5) };
        assert_eq!(peers(&[socket(4), socket(0), datagram, listener(&[])]), HashSet::from([4]));
    }

    #[test]
    fn the_container_of_a_conmon() {
        let id = "0a".repeat(32);
        let of = |words: &[&str]| container_of(words.join("\0").as_bytes());
        let line = ["/usr/bin/conmon", "--api-version", "1", "-c", &id, "-u", &id, "-r", "/usr/bin/crun"];
        assert_eq!(of(&line), Some(id.clone()));
        assert_eq!(of(&["conmon", "-c"]), None);
        assert_eq!(of(&["conmon", "-c", "../../x"]), None);
        assert_eq!(of(&["conmon", "-u", &id]), None);
        assert_eq!(of(&[]), None);
    }
}

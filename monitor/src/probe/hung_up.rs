//! Which servers have a standard input that is hung up. This is asked about all servers of living owners, so it costs
//! microseconds a server and reads no other process.
//!
//! A server is listed only if it still has its own end of the wire and the other end is closed for good. The other
//! end of an anonymous pipe or of a connected socket cannot be opened again. A server that has closed its own end is
//! not listed: nobody can tell from outside whether the owner let go of it.

use std::io;

use super::{
    Probe,
    pipe::{self, Said},
};
use crate::host::UnixSockets;
use orphand_core::model::{OwnEnd, ProcessId, Stdio, scene::Side};

impl Probe {
    /// The processes whose standard input is hung up, of those asked about. One that cannot be read is left out.
    pub(super) fn hung_up(&self, servers: &[OwnEnd]) -> Vec<ProcessId> {
        let mut sockets = None;
        let is_hung_up = |end: &&OwnEnd| match end.stdin {
            Stdio::Pipe(inode) => self.pipe_is_hung_up(end.process, inode),
            Stdio::Socket(inode) => self.socket_is_hung_up(&mut sockets, end.process, inode),
            _ => false,
        };
        servers.iter().filter(is_hung_up).map(|end| end.process).collect()
    }

    fn pipe_is_hung_up(&self, process: ProcessId, inode: u64) -> bool {
        let Ok(Some(dir)) = self.proc.identified(process) else { return false };
        let asked = match pipe::ask(&dir, 0, inode, Side::Reads) {
            // The server has moved its standard input to another descriptor.
            Ok(None) => dir.fd_table().ok().and_then(|table| {
                let numbers = pipe::descriptors(&dir, &table, inode);
                numbers.into_iter().find_map(|number| pipe::ask(&dir, number, inode, Side::Reads).ok()?)
            }),
            asked => asked.ok().flatten(),
        };
        asked == Some(Said::HungUp)
    }

    fn socket_is_hung_up(
        &self,
        ours: &mut Option<io::Result<UnixSockets>>,
        process: ProcessId,
        inode: u64,
    ) -> bool {
        let Ok(Some(dir)) = self.proc.identified(process) else { return false };
        let is_there = || dir.fd_table().is_ok_and(|table| table.sockets().any(|socket| socket == inode));
        if dir.stdio().first() != Some(&Stdio::Socket(inode)) && !is_there() {
            return false;
        }
        let Ok(ours) = ours.get_or_insert_with(UnixSockets::here) else { return false };
        match ours.find(inode) {
            Ok(Some(socket)) => socket.hung_up(),
            // It belongs to another network namespace.
            Ok(None) => dir.open_file("ns/net").is_ok_and(|namespace| {
                let found = UnixSockets::inside(namespace).and_then(|mut sockets| sockets.find(inode));
                matches!(found, Ok(Some(socket)) if socket.hung_up())
            }),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::{fd::OwnedFd, unix::net::UnixStream},
        process::Stdio as Std,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{os::forks_of_tests::settle, probe::tests::Started};

    fn listed(server: &Started, wire: Stdio) -> bool {
        settle();
        let end = OwnEnd { process: server.id(), stdin: wire };
        Probe::new().unwrap().hung_up(&[end]) == [server.id()]
    }

    /// A busy host may not answer in time, and then nobody is listed.
    fn is_listed_at_last(server: &Started, wire: Stdio) {
        let until = Instant::now() + Duration::from_secs(20);
        while !listed(server, wire) {
            assert!(Instant::now() < until);
        }
    }

    #[test]
    fn a_pipe_is_hung_up_when_the_last_writer_has_closed_it() {
        let mut server = Started::sleeper(Std::piped());
        let wire = server.wire();
        assert!(!listed(&server, wire));
        let writer = OwnedFd::from(server.0.stdin.take().unwrap());
        let copy = writer.try_clone().unwrap();
        drop(writer);
        assert!(!listed(&server, wire));
        drop(copy);
        is_listed_at_last(&server, wire);
    }

    #[test]
    fn a_socket_is_hung_up_when_its_peer_is_closed_and_not_when_it_is_shut_down() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = Started::sleeper(OwnedFd::from(theirs));
        let wire = server.wire();
        ours.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(!listed(&server, wire));
        drop(ours);
        is_listed_at_last(&server, wire);
    }

    #[test]
    fn a_wire_that_was_moved_is_asked_where_it_is_and_one_that_was_closed_is_not_listed() {
        for target in ["9", "None"] {
            let script = format!(
                "import os, time\nif {target}: os.dup2(0, 9)\nos.dup2(os.open('/dev/null', 0), 0); print(flush=True); time.sleep(600)"
            );
            let (reader, writer) = std::io::pipe().unwrap();
            let wire = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
            let (server, _) = Started::python(&script, reader);
            drop(writer);
            if target == "9" {
                is_listed_at_last(&server, wire);
            } else {
                assert!(!listed(&server, wire));
            }
        }
    }

    #[test]
    fn another_process_of_that_number_is_not_listed() {
        let mut server = Started::sleeper(Std::piped());
        let wire = server.wire();
        drop(server.0.stdin.take());
        let other = ProcessId { start: server.id().start + 1, ..server.id() };
        assert!(Probe::new().unwrap().hung_up(&[OwnEnd { process: other, stdin: wire }]).is_empty());
    }
}

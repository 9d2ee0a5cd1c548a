//! Which servers have a standard input that is hung up. This is asked about all servers of living owners, so it costs
//! microseconds a server and reads no other process.
//!
//! A server is listed only if it still has its own end of the wire and the other end is closed for good. The other
//! end of an anonymous pipe or of a connected socket cannot be opened again. A server that has closed its own end is
//! not listed: nobody can tell from outside whether the owner let go of it.

use std::io;

use super::{
    Probe,
    pipe::{self, Said, Side},
    server::Looked,
    wire::Wired,
};
use crate::host::{ProcessDir, UnixSockets};
use orphand_core::model::{OwnEnd, ProcessId, Stdio, WireState};

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
            Ok(None) => dir.fd_table().is_ok_and(|table| {
                let found = self.diag(inode, &[Looked { process, table, in_rings: Vec::new() }]);
                matches!(found, Ok(Some(socket)) if socket.hung_up())
            }),
            Err(_) => false,
        }
    }

    /// Whether a process of the server still has its own end of standard input and output. Known only if the standard
    /// input is hung up; nobody asks for it otherwise.
    pub(super) fn own_ends(&self, server: &Wired<'_>, stdin: &WireState) -> [bool; 2] {
        if *stdin != WireState::HungUp {
            return [false; 2];
        }
        let [stdin, stdout] = server.wires;
        [(stdin, Side::Reads), (stdout, Side::Writes)].map(|(wire, side)| {
            server.looked.iter().any(|one| match wire {
                Stdio::Socket(inode) => one.table.sockets().any(|socket| socket == inode),
                Stdio::Pipe(inode) => {
                    matches!(self.proc.identified(one.process), Ok(Some(dir)) if has_end(&dir, one, inode, side))
                }
                _ => false,
            })
        })
    }
}

fn has_end(dir: &ProcessDir, one: &Looked, inode: u64, side: Side) -> bool {
    let Ok(fds) = dir.fd_dir() else { return false };
    let is_own = |number: &u32| fds.access(*number).is_some_and(|access| side.is_own(access));
    pipe::descriptors(dir, &one.table, inode).iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use std::{
        os::{fd::OwnedFd, unix::net::UnixStream},
        process::{Command, Stdio as Std},
    };

    use super::*;
    use crate::{
        os::forks_of_tests::settle,
        probe::tests::{Started, look},
    };
    use orphand_core::model::Subject;

    fn listed(server: &Started, wire: Stdio) -> bool {
        settle();
        let end = OwnEnd { process: server.id(), stdin: wire };
        Probe::new().unwrap().hung_up(&[end]) == [server.id()]
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
        assert!(listed(&server, wire));
    }

    #[test]
    fn a_socket_is_hung_up_when_its_peer_is_closed_and_not_when_it_is_shut_down() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = Started::sleeper(OwnedFd::from(theirs));
        let wire = server.wire();
        ours.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(!listed(&server, wire));
        drop(ours);
        assert!(listed(&server, wire));
    }

    #[test]
    fn a_wire_that_was_moved_is_asked_where_it_is_and_one_that_was_closed_is_not_listed() {
        for (target, expected) in [("9", true), ("None", false)] {
            let script = format!(
                "import os, time\nif {target}: os.dup2(0, 9)\nos.dup2(os.open('/dev/null', 0), 0); print(flush=True); time.sleep(600)"
            );
            let (reader, writer) = std::io::pipe().unwrap();
            let wire = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
            let (server, _) = Started::python(&script, reader);
            drop(writer);
            assert_eq!(listed(&server, wire), expected, "{target}");
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

    #[test]
    fn own_ends_are_those_that_the_server_has() {
        let mut server =
            Started::new(Command::new("sleep").arg("600").stdin(Std::piped()).stdout(Std::piped()));
        let stdin = server.wire();
        let stdout = Probe::new().unwrap().proc.process(server.id().pid).unwrap().stdio()[1];
        let ends = |processes: Vec<ProcessId>| {
            look(&Subject { processes, stdin, stdout, ..Subject::default() }).own_ends
        };
        assert_eq!(ends(vec![server.id()]), [false, false]);
        drop(server.0.stdin.take());
        assert!(listed(&server, stdin));
        assert_eq!(ends(vec![server.id()]), [true, true]);
        let other = Started::sleeper(Std::null());
        assert_eq!(ends(vec![other.id()]), [false, false]);
    }
}

//! How much waits in a standard input that nobody has read yet: requests.

use rustix::{fs::fstat, io::ioctl_fionread};

use super::pipe::duplicate_any;
use crate::host::{Proc, Target};
use orphand_core::model::{ProcessId, Stdio};

/// How many bytes wait in this pipe or socket, asked through a duplicate of a descriptor of the first of these processes
/// that has it: ioctl(2) with `FIONREAD`, which takes nothing. `None` if none of them has it, or it cannot be asked.
pub(crate) fn bytes(proc: &Proc, processes: &[ProcessId], wire: Stdio) -> Option<u64> {
    let (inode, target) = match wire {
        Stdio::Pipe(inode) => (inode, Target::Pipe(inode)),
        Stdio::Socket(inode) => (inode, Target::Socket(inode)),
        _ => return None,
    };
    processes.iter().find_map(|process| {
        let dir = proc.identified(*process).ok()??;
        let number = dir.fd_table().ok()?.fds.iter().find(|fd| fd.target == target)?.number;
        let file = duplicate_any(&dir, number).ok()??;
        let is_same = fstat(&file).is_ok_and(|stat| stat.st_ino == inode);
        ioctl_fionread(&file).ok().filter(|_| is_same)
    })
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        os::{fd::OwnedFd, unix::net::UnixStream},
        process::Stdio as Std,
    };

    use super::*;
    use crate::probe::tests::Started;

    fn waiting(server: &Started) -> Option<u64> {
        bytes(&Proc::system().unwrap(), &[server.id()], server.wire())
    }

    #[test]
    fn what_nobody_has_read_is_counted_and_stays() {
        let mut server = Started::sleeper(Std::piped());
        assert_eq!(waiting(&server), Some(0));
        server.0.stdin.as_mut().unwrap().write_all(b"{}\n").unwrap();
        assert_eq!((waiting(&server), waiting(&server)), (Some(3), Some(3)));
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let server = Started::sleeper(OwnedFd::from(theirs));
        assert_eq!(waiting(&server), Some(0));
        ours.write_all(b"{\"id\":1}\n").unwrap();
        assert_eq!((waiting(&server), waiting(&server)), (Some(9), Some(9)));
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let server = Started::sleeper(Std::null());
        assert_eq!(waiting(&server), None);
        let proc = Proc::system().unwrap();
        assert_eq!(bytes(&proc, &[server.id()], Stdio::Pipe(1)), None);
        let other = ProcessId { start: server.id().start + 1, ..server.id() };
        let (reader, _writer) = std::io::pipe().unwrap();
        let wire = Stdio::Pipe(fstat(&reader).unwrap().st_ino);
        let reads = Started::sleeper(reader);
        assert_eq!(bytes(&proc, &[reads.id()], wire), Some(0));
        assert_eq!(bytes(&proc, &[other], wire), None);
    }
}

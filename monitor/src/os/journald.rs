//! The journal of systemd: whether a standard stream of ours leads to it, and its native protocol
//! (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL>). Only entries with one-line fields are supported.
//!
//! Invariant: an entry is one datagram, or one sealed memory file if it is too large for a datagram; it is
//! never sent in part. For the sinks.

use std::{
    env,
    fmt::Write as _,
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{fd::AsFd, unix::net::UnixDatagram},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{MemfdFlags, fstat},
    io::Errno,
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr},
};

use super::sealed;

const SOCKET: &str = "/run/systemd/journal/socket";
/// Device and inode of the stream that the service manager connected to the journal, systemd.exec(5).
const STREAM: &str = "JOURNAL_STREAM";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    Debug = 7,
}

pub fn is_at(stream: impl AsFd) -> bool {
    env::var(STREAM).is_ok_and(|named| {
        fstat(stream).is_ok_and(|found| named == format!("{}:{}", found.st_dev, found.st_ino))
    })
}

/// Appends the field `name` as one line, whatever `value` contains.
pub fn field(entry: &mut String, name: &str, value: &str) {
    entry.push_str(name);
    entry.push('=');
    // A line feed would start another field.
    entry.extend(value.chars().map(|c| if c == '\n' { ' ' } else { c }));
    entry.push('\n');
}

pub fn head(entry: &mut String, message: &str, priority: Priority) {
    field(entry, "MESSAGE", message);
    // A write to a string cannot fail.
    let _ = writeln!(entry, "PRIORITY={}", priority as u8);
    entry.push_str("SYSLOG_IDENTIFIER=orphand\n");
}

#[derive(Debug)]
pub struct Journal {
    line: UnixDatagram,
    path: PathBuf,
}

impl Journal {
    pub fn open() -> io::Result<Self> {
        Self::at(Path::new(SOCKET))
    }

    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { line: UnixDatagram::unbound()?, path: path.to_owned() })
    }

    /// Sends an entry, completely or not at all. Waits until journald has room for it.
    pub fn send(&self, entry: &str) -> io::Result<()> {
        match self.line.send_to(entry.as_bytes(), &self.path) {
            Err(error) if is(&error, Errno::MSGSIZE) || is(&error, Errno::NOBUFS) => self.send_file(entry),
            sent => sent.map(drop),
        }
    }

    fn send_file(&self, entry: &str) -> io::Result<()> {
        // What is not sealed journald rejects.
        let file = sealed("orphand-journal", entry, MemfdFlags::empty())?;
        let descriptors = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::Error::other("no room for a descriptor"));
        }
        let to = SocketAddrUnix::new(&self.path)?;
        sendmsg_addr(&self.line, &to, &[IoSlice::new(&[])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Whether no process listens at present, because journald restarts.
pub fn is_absent(error: &io::Error) -> bool {
    is(error, Errno::CONNREFUSED) || is(error, Errno::NOENT)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read as _, Write as _},
    };

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

    use super::*;

    fn journald(dir: &tempfile::TempDir) -> (UnixDatagram, PathBuf) {
        let path = dir.path().join("socket");
        (UnixDatagram::bind(&path).unwrap(), path)
    }

    #[test]
    fn a_field_stays_on_its_line() {
        let mut entry = String::new();
        head(&mut entry, "all is\nwell\nPRIORITY=0", Priority::Info);
        assert_eq!(entry, "MESSAGE=all is well PRIORITY=0\nPRIORITY=6\nSYSLOG_IDENTIFIER=orphand\n");
    }

    #[test]
    fn a_small_entry_is_a_datagram() {
        let dir = tempfile::tempdir().unwrap();
        let (other, path) = journald(&dir);
        Journal::at(&path).unwrap().send("MESSAGE=x\n").unwrap();
        let mut got = [0; 64];
        let length = other.recv(&mut got).unwrap();
        assert_eq!(&got[..length], b"MESSAGE=x\n");
    }

    #[test]
    fn a_large_entry_is_a_file_that_nobody_can_change() {
        let dir = tempfile::tempdir().unwrap();
        let (other, path) = journald(&dir);
        let large = format!("MESSAGE={}\n", "x".repeat(8 << 20));
        Journal::at(&path).unwrap().send(&large).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        recvmsg(&other, &mut [], &mut control, RecvFlags::empty()).unwrap();
        let mut files = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let mut file = File::from(files.next().unwrap());
        let mut got = String::new();
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut got).unwrap();
        assert!(got == large);
        assert!(file.write_all(b"x").is_err());
    }

    #[test]
    fn where_nobody_listens_is_told() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_absent(&Journal::at(&dir.path().join("no")).unwrap().send("MESSAGE=x\n").unwrap_err()));
    }

    #[test]
    fn a_pipe_is_no_journal() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        assert!(!is_at(read));
    }
}

//! The conversation with a manager.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    os::{fd::AsFd, unix::net::UnixStream},
    time::{Duration, Instant},
};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::{
    ManagerError, PATIENCE, Question,
    message::{self, Call, PREFIX, Reply, Value},
};
use crate::os::own;
use orphand_core::model::UnitProperties;

const SYSTEMD: &str = "org.freedesktop.systemd1";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// No message is longer.
const LONGEST: usize = 64 * 1024;
/// Messages that are none of ours, before an answer. A bus sends a few signals.
const OTHERS: usize = 64;

/// Why there is no answer.
enum Failure {
    Io(io::Error),
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Asks at `socket`, which need not be open for anything.
pub(super) fn ask(socket: impl AsFd, question: &Question) -> Result<UnitProperties, ManagerError> {
    let path = || question.path.clone();
    let stream = reach(socket).map_err(|why| match why.kind() {
        // A queue that is full is silence.
        ErrorKind::WouldBlock => ManagerError::Silent { path: path() },
        _ => ManagerError::Unreachable { path: path(), why: why.to_string() },
    })?;
    let said = converse(stream, question).map_err(|failure| match failure {
        Failure::Io(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            ManagerError::Silent { path: path() }
        }
        Failure::Io(why) => ManagerError::Refused { why: why.to_string() },
        Failure::Refused(why) => ManagerError::Refused { why },
    });
    said?
}

/// A connection, made without waiting.
fn reach(socket: impl AsFd) -> io::Result<UnixStream> {
    // The link leads to the very file that was opened, wherever its path leads now.
    let link = own::path_of(&socket.as_fd());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &SocketAddrUnix::new(link)?)?;
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn converse(
    stream: UnixStream,
    question: &Question,
) -> Result<Result<UnitProperties, ManagerError>, Failure> {
    if let Some(manager) = question.manager {
        // Who called listen(2): containers that share /run have one manager's socket between them.
        let found = getsockopt(&stream, PeerCredentials).map_err(io::Error::from)?.pid();
        if u32::try_from(found) != Ok(manager) {
            return Ok(Err(ManagerError::Stranger { path: question.path.clone(), found }));
        }
    }
    let destination = question.manager.is_none().then_some(SYSTEMD);
    let mut line = Line { stream, until: Instant::now() + PATIENCE, serial: 0 };
    line.authenticate(question.uid)?;
    if destination.is_some() {
        let bus = "org.freedesktop.DBus";
        let path = "/org/freedesktop/DBus";
        line.call(&Call { destination: Some(bus), path, interface: bus, member: "Hello", arguments: &[] })?;
    }
    // As `systemctl show` does: a unit that is not in memory is read, nothing is started.
    let path = line.call(&Call {
        destination,
        path: "/org/freedesktop/systemd1",
        interface: "org.freedesktop.systemd1.Manager",
        member: "LoadUnit",
        arguments: &[&question.unit],
    })?;
    let path = text(path, "LoadUnit")?;
    let mut property = |interface: &str, name: &str| {
        let interface_of = "org.freedesktop.DBus.Properties";
        let arguments = &[interface, name];
        line.call(&Call { destination, path: &path, interface: interface_of, member: "Get", arguments })
    };
    if text(property(UNIT, "LoadState")?, "LoadState")? == "not-found" {
        return Ok(Err(ManagerError::NoUnit));
    }
    let stop = number(&property(SERVICE, "TimeoutStopUSec")?, "TimeoutStopUSec")?;
    let main_pid = number(&property(SERVICE, "MainPID")?, "MainPID")?;
    Ok(Ok(UnitProperties {
        main_pid: u32::try_from(main_pid).unwrap_or_default(),
        kill_mode: text(property(SERVICE, "KillMode")?, "KillMode")?,
        restart: text(property(SERVICE, "Restart")?, "Restart")?,
        // `USEC_INFINITY`
        timeout_stop_us: Some(stop).filter(|stop| *stop != u64::MAX),
        delegate: number(&property(SERVICE, "Delegate")?, "Delegate")? != 0,
        fragment: text(property(UNIT, "FragmentPath")?, "FragmentPath")?,
    }))
}

fn text(value: Value, name: &str) -> Result<String, Failure> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(Failure::Refused(format!("{name} is no text"))),
    }
}

fn number(value: &Value, name: &str) -> Result<u64, Failure> {
    match value {
        Value::Number(number) => Ok(*number),
        _ => Err(Failure::Refused(format!("{name} is no number"))),
    }
}

/// A connection, until the time is over.
struct Line {
    stream: UnixStream,
    until: Instant,
    serial: u32,
}

impl Line {
    /// Says who we are, as systemd's own client does: all in one go. That descriptors may be passed is asked for its answer: with
    /// it the other side has read all, and waits for a message.
    fn authenticate(&mut self, uid: u32) -> Result<(), Failure> {
        // In hexadecimal the digits of ASCII are 30 to 39.
        let digits: String = uid.to_string().chars().flat_map(|digit| ['3', digit]).collect();
        self.write(format!("\0AUTH EXTERNAL {digits}\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n").as_bytes())?;
        for wanted in ["OK ", "AGREE_UNIX_FD"] {
            let line = self.line()?;
            if !line.starts_with(wanted) {
                return Err(Failure::Refused(format!("authentication: {line:?}")));
            }
        }
        Ok(())
    }

    /// A line of the authentication. Nothing behind it is read: what follows are messages.
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() > 512 {
                return Err(Failure::Refused("authentication: no line".to_owned()));
            }
            line.extend(self.read(1)?);
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// Calls, and waits for the answer.
    fn call(&mut self, call: &Call<'_>) -> Result<Value, Failure> {
        self.serial += 1;
        self.write(&message::call(self.serial, call))?;
        for _ in 0..OTHERS {
            match self.reply()? {
                Reply::Value(serial, value) if serial == self.serial => return Ok(value),
                Reply::Error(serial, why) if serial == self.serial => return Err(Failure::Refused(why)),
                _ => {}
            }
        }
        Err(Failure::Refused(format!("no answer to {}", call.member)))
    }

    fn reply(&mut self) -> Result<Reply, Failure> {
        let mut message = self.read(PREFIX)?;
        let total = message::total(&message).filter(|total| (PREFIX..=LONGEST).contains(total));
        let rest = total.and_then(|total| total.checked_sub(PREFIX));
        let rest = rest.ok_or_else(|| Failure::Refused("no message of D-Bus".to_owned()))?;
        message.extend(self.read(rest)?);
        message::reply(&message).ok_or_else(|| Failure::Refused("a message that cannot be read".to_owned()))
    }

    fn read(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(rest) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(got) => filled += got,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// A question is shorter than what a socket takes at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write_all(bytes)
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

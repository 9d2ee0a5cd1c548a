//! The conversation with a manager.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream},
};

use orphand_core::model::UnitProperties;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net,
};

use super::{
    ManagerError, PATIENCE, Question,
    wire::{Call, Head, PREFIX, Said, Value},
};
use crate::os::own;

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// Asks at `socket`, which need not be open for anything.
pub(super) fn ask(socket: impl AsFd, question: &Question) -> Result<UnitProperties, ManagerError> {
    let stream = reach(socket, question)?;
    let refused = |error: &dyn std::fmt::Display| ManagerError::Refused { why: error.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| refused(&error))?;
    let said = runtime.block_on(async {
        let stream = net::UnixStream::from_std(stream).map_err(|error| refused(&error))?;
        if let Some(manager) = question.manager {
            // Who called listen(2): containers that share /run have one manager's socket between them.
            let found = stream.peer_cred().map_err(|error| refused(&error))?.pid().unwrap_or_default();
            if u32::try_from(found) != Ok(manager) {
                return Err(ManagerError::Stranger { path: question.path.clone(), found });
            }
        }
        match tokio::time::timeout(PATIENCE, talk(stream, question)).await {
            Ok(said) => said.map_err(|error| refused(&error)),
            Err(_) => Err(ManagerError::Silent { path: question.path.clone() }),
        }
    });
    said?.ok_or(ManagerError::NoUnit)
}

/// A connection, made without waiting: a queue that is full is silence.
fn reach(socket: impl AsFd, question: &Question) -> Result<UnixStream, ManagerError> {
    let path = || question.path.clone();
    let failed = |why: io::Error| match why.kind() {
        io::ErrorKind::WouldBlock => ManagerError::Silent { path: path() },
        _ => ManagerError::Unreachable { path: path(), why: why.to_string() },
    };
    // The link leads to the very file that was opened, wherever its path leads now.
    let link = own::path_of(&socket.as_fd());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).and_then(|stream| {
        connect(&stream, &SocketAddrUnix::new(link)?)?;
        Ok(stream)
    });
    let stream = stream.map_err(|errno| failed(errno.into()))?;
    Ok(stream.into())
}

/// None if there is no such unit.
async fn talk(stream: net::UnixStream, question: &Question) -> io::Result<Option<UnitProperties>> {
    let own = question.manager.is_some();
    let mut line = Line::begin(stream, question.uid).await?;
    if !own {
        let hello =
            Call { destination: Some(BUS), path: BUS_PATH, interface: BUS, member: "Hello", arguments: &[] };
        line.call(&hello).await?;
    }
    let destination = (!own).then_some(SYSTEMD);
    // As `systemctl show` does: a unit that is not in memory is read, nothing is started.
    let arguments = &[question.unit.as_str()];
    let load = Call { destination, path: MANAGER_PATH, interface: MANAGER, member: "LoadUnit", arguments };
    let path = text(line.call(&load).await?)?;
    let mut unit = Unit { line, destination, path };
    if text(unit.property(UNIT, "LoadState").await?)? == "not-found" {
        return Ok(None);
    }
    let stop = number(&unit.property(SERVICE, "TimeoutStopUSec").await?)?;
    Ok(Some(UnitProperties {
        main_pid: u32::try_from(number(&unit.property(SERVICE, "MainPID").await?)?).map_err(|_| other())?,
        kill_mode: text(unit.property(SERVICE, "KillMode").await?)?,
        restart: text(unit.property(SERVICE, "Restart").await?)?,
        // `USEC_INFINITY`
        timeout_stop_us: Some(stop).filter(|stop| *stop != u64::MAX),
        delegate: flag(&unit.property(SERVICE, "Delegate").await?)?,
        fragment: text(unit.property(UNIT, "FragmentPath").await?)?,
    }))
}

fn text(value: Value) -> io::Result<String> {
    if let Value::Text(text) = value { Ok(text) } else { Err(other()) }
}

fn number(value: &Value) -> io::Result<u64> {
    if let Value::Number(number) = value { Ok(*number) } else { Err(other()) }
}

fn flag(value: &Value) -> io::Result<bool> {
    if let Value::Flag(flag) = value { Ok(*flag) } else { Err(other()) }
}

fn other() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it answers with a value of another type")
}

/// A connection whose other side knows who we are.
struct Line {
    stream: BufReader<net::UnixStream>,
    /// The number of the last call.
    serial: u32,
}

impl Line {
    /// No line of the other side is longer while it gets to know us.
    const LONGEST: usize = 256;

    /// Says who we are (SASL's `EXTERNAL`: the kernel says the same), and begins.
    ///
    /// No descriptors are wanted. They are negotiated for the answer: it tells that the manager has read `BEGIN`, which came with the
    /// question. A manager that reads `BEGIN` together with the first message answers that only when it is written to once more.
    async fn begin(stream: net::UnixStream, uid: u32) -> io::Result<Self> {
        let mut line = Self { stream: BufReader::new(stream), serial: 0 };
        // As hexadecimal text of the decimal digits.
        let uid: String = uid.to_string().chars().flat_map(|digit| ['3', digit]).collect();
        line.send(format!("\0AUTH EXTERNAL {uid}\r\n").as_bytes()).await?;
        let said = line.read_line().await?;
        if !said.starts_with("OK ") {
            return Err(io::Error::other(format!("it does not take us: {said}")));
        }
        line.send(b"NEGOTIATE_UNIX_FD\r\nBEGIN\r\n").await?;
        line.read_line().await?;
        Ok(line)
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    async fn read_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") && line.len() < Self::LONGEST {
            line.push(self.stream.read_u8().await?);
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// The first value of the answer.
    async fn call(&mut self, call: &Call<'_>) -> io::Result<Value> {
        self.serial += 1;
        self.send(&call.message(self.serial)).await?;
        loop {
            let mut prefix = [0; PREFIX];
            self.stream.read_exact(&mut prefix).await?;
            let head = Head::parse(&prefix)?;
            let mut rest = vec![0; head.rest()];
            self.stream.read_exact(&mut rest).await?;
            // A bus tells more than it was asked.
            match head.answer(&rest)? {
                Some((to, Said::Value(value))) if to == self.serial => return value.ok_or_else(other),
                Some((to, Said::Error(why))) if to == self.serial => return Err(io::Error::other(why)),
                _ => {}
            }
        }
    }
}

/// A unit as D-Bus shows it.
struct Unit {
    line: Line,
    destination: Option<&'static str>,
    path: String,
}

impl Unit {
    async fn property(&mut self, interface: &str, name: &str) -> io::Result<Value> {
        let (destination, path) = (self.destination, self.path.as_str());
        let arguments = &[interface, name];
        let get = Call { destination, path, interface: PROPERTIES, member: "Get", arguments };
        self.line.call(&get).await
    }
}

//! The D-Bus conversation with a service manager: the handshake, and calls whose replies are one string, one path or one
//! variant of a basic type (D-Bus Specification, "Message Protocol" and "Authentication Protocol").
//!
//! It is written here because a whole client of D-Bus is seventy crates for eight calls, and takes a manager
//! for an error that names itself in its messages by its well-known name, as it does at its own socket.
//!
//! Invariant: whatever the other side sends, at most [`LONGEST`] bytes of a message are taken. Nothing here has a time limit: who
//! does not answer is waited for until the helper is ended.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{fd::AsFd, unix::net::UnixStream},
};

use rustix::net::sockopt::socket_peercred;

use super::{ManagerError, Question};
use crate::os::own;
use orphand_core::model::UnitProperties;

const BUS: &str = "org.freedesktop.DBus";
const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// The longest message that is taken, in bytes.
const LONGEST: usize = 1 << 20;
/// The byte order of this host, as a message tells its own.
const ENDIAN: u8 = if cfg!(target_endian = "little") { b'l' } else { b'B' };
const CALL: u8 = 1;
const RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Asks the manager at `socket` about a unit. The descriptor may be one opened with `O_PATH`.
pub(super) fn ask(
    socket: impl AsFd,
    question: &Question,
    unit: &str,
) -> Result<UnitProperties, ManagerError> {
    talk(socket, question, |bus| bus.properties(unit))?.ok_or(ManagerError::NoUnit)
}

/// The same about the names of all units that it is stopping.
pub(super) fn stopping(socket: impl AsFd, question: &Question) -> Result<Vec<String>, ManagerError> {
    talk(socket, question, Bus::stopping)
}

fn talk<T>(
    socket: impl AsFd,
    question: &Question,
    say: impl FnOnce(&mut Bus) -> io::Result<T>,
) -> Result<T, ManagerError> {
    // This /proc link leads to the file that was opened, even if its path leads elsewhere now.
    let stream = UnixStream::connect(own::path_of(&socket.as_fd()))
        .map_err(|why| ManagerError::unreachable(&question.path, &why))?;
    if let Some(manager) = question.manager {
        // The peer is the process that called listen(2). Containers that share /run have the socket of one manager in common.
        let found = socket_peercred(&stream).map_err(|error| ManagerError::refused(&error))?.pid.as_raw_pid();
        if u32::try_from(found) != Ok(manager) {
            let what = format!("at {} not its manager answers, but process {found}", question.path);
            return Err(ManagerError::Other(format!("{what}: ask it with `systemctl show`, where it runs")));
        }
    }
    let mut bus = Bus::new(stream);
    bus.begin(question).and_then(|()| say(&mut bus)).map_err(|why| ManagerError::refused(&why))
}

struct Bus {
    stream: BufReader<UnixStream>,
    serial: u32,
}

/// The lines of the client, with its user id: decimal digits, each as hexadecimal digits of its ASCII code.
fn login(uid: u32) -> String {
    let id: String = uid.to_string().bytes().flat_map(|digit| ['3', char::from(digit)]).collect();
    format!("\0AUTH EXTERNAL {id}\r\nBEGIN\r\n")
}

impl Bus {
    fn new(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(stream), serial: 0 }
    }

    fn begin(&mut self, question: &Question) -> io::Result<()> {
        self.log_in(question.uid)?;
        if question.manager.is_none() {
            self.call([BUS, "/org/freedesktop/DBus", BUS, "Hello"], "", &[])?;
        }
        Ok(())
    }

    fn stopping(&mut self) -> io::Result<Vec<String>> {
        self.call([SYSTEMD, MANAGER_PATH, MANAGER, "ListUnitsFiltered"], "as", &["deactivating"])?.units()
    }

    fn properties(&mut self, unit: &str) -> io::Result<Option<UnitProperties>> {
        // As `systemctl show` does: the manager reads a unit that is not in memory, and starts nothing.
        let path = self.call([SYSTEMD, MANAGER_PATH, MANAGER, "LoadUnit"], "s", &[unit])?.string()?;
        let mut property = |interface, name, kind| {
            self.call([SYSTEMD, &path, PROPERTIES, "Get"], "ss", &[interface, name])?.variant(kind)
        };
        if property(UNIT, "LoadState", "s")?.string()? == "not-found" {
            return Ok(None);
        }
        let stop = property(SERVICE, "TimeoutStopUSec", "t")?.u64()?;
        Ok(Some(UnitProperties {
            main_pid: property(SERVICE, "MainPID", "u")?.u32()?,
            kill_mode: property(SERVICE, "KillMode", "s")?.string()?,
            restart: property(SERVICE, "Restart", "s")?.string()?,
            // `USEC_INFINITY`
            timeout_stop_ms: Some(stop).filter(|stop| *stop != u64::MAX).map(|stop| stop / 1000),
            delegate: property(SERVICE, "Delegate", "b")?.u32()? != 0,
            fragment: property(UNIT, "FragmentPath", "s")?.string()?,
        }))
    }

    /// As sd-bus does: all at once, and the first message only after the answer.
    fn log_in(&mut self, uid: u32) -> io::Result<()> {
        self.send(login(uid).as_bytes())?;
        let mut line = Vec::new();
        self.stream.by_ref().take(512).read_until(b'\n', &mut line)?;
        if line.starts_with(b"OK ") {
            Ok(())
        } else {
            Err(odd(&format!("{:?}", String::from_utf8_lossy(&line))))
        }
    }

    /// Calls, and gives the body of the reply: nothing else is asked meanwhile. An error is told by its text.
    fn call(&mut self, what: [&str; 4], signature: &str, arguments: &[&str]) -> io::Result<Body> {
        self.serial += 1;
        self.send(&call(self.serial, what, signature, arguments))?;
        loop {
            match self.message()? {
                (RETURN, body) => return Ok(body),
                (ERROR, mut body) => {
                    let text = body.string().unwrap_or_default();
                    return Err(odd(&text.replace(|c: char| c.is_control(), " ")));
                }
                // A signal.
                _ => {}
            }
        }
    }

    /// The next message: its type and its body.
    fn message(&mut self) -> io::Result<(u8, Body)> {
        let fixed = self.receive(16)?;
        let [endian, kind, ..] = *fixed else { return Err(odd("a short message")) };
        let mut head = Body { bytes: fixed, at: 4 };
        let (body, _serial, fields) = (head.u32()? as usize, head.u32()?, head.u32()? as usize);
        if endian != ENDIAN || body.max(fields) > LONGEST {
            return Err(odd("no message of this host"));
        }
        self.receive(fields.next_multiple_of(8))?;
        Ok((kind, Body { bytes: self.receive(body)?, at: 0 }))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    fn receive(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).map_err(|_| odd("it closed the connection"))?;
        Ok(bytes)
    }
}

/// A call of the method `member`, with strings, or with one array of strings. A manager at its own socket does not mind who is
/// meant.
fn call(
    serial: u32,
    [to, path, interface, member]: [&str; 4],
    signature: &str,
    arguments: &[&str],
) -> Vec<u8> {
    let mut body = Vec::new();
    for argument in arguments {
        put_string(&mut body, argument);
    }
    if signature.starts_with('a') {
        body.splice(..0, size(&body));
    }
    let mut fields = Vec::new();
    for (field, kind, value) in [(1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", to)] {
        put_field(&mut fields, field, kind);
        put_string(&mut fields, value);
    }
    if !signature.is_empty() {
        put_field(&mut fields, 8, "g");
        put_signature(&mut fields, signature);
    }
    message(CALL, serial, &fields, &body)
}

fn size(part: &[u8]) -> [u8; 4] {
    u32::try_from(part.len()).unwrap_or(u32::MAX).to_ne_bytes()
}

/// The fields begin 16 bytes into the message, so they are aligned in it as they are alone.
fn message(kind: u8, serial: u32, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let mut message = vec![ENDIAN, kind, 0, 1];
    message.extend([size(body), serial.to_ne_bytes(), size(fields)].concat());
    message.extend(fields);
    message.resize(message.len().next_multiple_of(8), 0);
    message.extend(body);
    message
}

fn put_field(to: &mut Vec<u8>, field: u8, kind: &str) {
    to.resize(to.len().next_multiple_of(8), 0);
    to.push(field);
    put_signature(to, kind);
}

fn put_signature(to: &mut Vec<u8>, signature: &str) {
    to.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
    to.extend(signature.bytes().chain([0]));
}

fn put_string(to: &mut Vec<u8>, text: &str) {
    to.resize(to.len().next_multiple_of(4), 0);
    to.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_ne_bytes());
    to.extend(text.bytes().chain([0]));
}

/// Values one after the other, each aligned by its size.
struct Body {
    bytes: Vec<u8>,
    at: usize,
}

impl Body {
    /// The value inside a variant of this type.
    fn variant(mut self, kind: &str) -> io::Result<Self> {
        let found = self.signature()?;
        if found == kind { Ok(self) } else { Err(odd(&format!("a value of type {found:?}"))) }
    }

    /// The names in a list of units: an array of (ssssssouso).
    fn units(mut self) -> io::Result<Vec<String>> {
        let length = self.u32()? as usize;
        let end = self.at.next_multiple_of(8).saturating_add(length);
        let mut names = Vec::new();
        while self.at.next_multiple_of(8) < end {
            self.align(8)?;
            names.push(self.string()?);
            (0..6).try_for_each(|_| self.string().map(drop))?;
            self.u32()?;
            (0..2).try_for_each(|_| self.string().map(drop))?;
        }
        Ok(names)
    }

    fn string(&mut self) -> io::Result<String> {
        let length = self.u32()? as usize;
        self.chars(length)
    }

    fn signature(&mut self) -> io::Result<String> {
        let [length] = self.take()?;
        self.chars(length.into())
    }

    /// So many bytes of text, and the zero behind them.
    fn chars(&mut self, length: usize) -> io::Result<String> {
        let text =
            self.bytes.get(self.at..self.at.saturating_add(length)).ok_or_else(|| odd("a short message"))?;
        let text = String::from_utf8_lossy(text).into_owned();
        self.at += length + 1;
        Ok(text)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.align(4)?;
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.align(8)?;
        self.take().map(u64::from_ne_bytes)
    }

    fn align(&mut self, to: usize) -> io::Result<()> {
        self.at = self.at.next_multiple_of(to);
        if self.at < self.bytes.len() { Ok(()) } else { Err(odd("a short message")) }
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let part = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let part = *part.ok_or_else(|| odd("a short message"))?;
        self.at += N;
        Ok(part)
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

#[cfg(test)]
pub(super) mod tests;

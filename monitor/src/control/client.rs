//! The client of the control socket.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::net::sockopt::socket_peercred;
use serde::de::DeserializeOwned;

use super::protocol::{self, Refusal, Request};
use crate::{
    events::{EventQuery, Position},
    host::{Proc, lock_holder},
};
use orphand_core::model::{
    Asked, Decided, Decision, Explained, History, HistoryQuery, ReapRequest, ReleaseRequest, Released,
    Reloaded, ServerReport, Status,
};

const TIMEOUT: Duration = Duration::from_secs(65);
/// The file that the daemon has locked, beside its socket.
const LOCK: &str = "lock";
/// How long a daemon may be silent before it is looked whether it can answer at all.
const LOOK: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no orphand answers at {}: {source}; {}", path.display(), advice(path))]
    NoDaemon { path: PathBuf, source: io::Error },
    #[error("the daemon at {} (pid {pid}) is stopped: `kill -CONT {pid}`, or thaw its control group", path.display())]
    Stopped { path: PathBuf, pid: i32 },
    #[error("the daemon at {}: {what}", path.display())]
    Forbidden { path: PathBuf, what: String },
    #[error("cannot {operation} the daemon at {}: {source}; see the log of the daemon", path.display())]
    Broken { operation: &'static str, path: PathBuf, source: io::Error },
    /// The daemon refused the request, or the answer cannot be read.
    #[error("the daemon at {}: {what}", path.display())]
    Response { path: PathBuf, what: String },
}

/// A client of one daemon. Every request uses a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    timeout: Duration,
}

impl Client {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), timeout: TIMEOUT }
    }

    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub fn status(&self, pss: bool) -> Result<Status, ClientError> {
        self.ask(&Request::Status { pss })
    }

    pub fn plan(&self, request: ReapRequest) -> Result<Vec<ServerReport>, ClientError> {
        self.ask(&Request::Plan { request })
    }

    pub fn reap(&self, request: ReapRequest) -> Result<Vec<ServerReport>, ClientError> {
        self.ask(&Request::Reap { request, on_behalf_of: on_behalf_of() })
    }

    pub fn history(&self, query: HistoryQuery) -> Result<History, ClientError> {
        self.ask(&Request::History { query })
    }

    pub fn explain(&self, process: Asked) -> Result<Vec<Explained>, ClientError> {
        self.ask(&Request::Explain { process })
    }

    pub fn release(&self, request: ReleaseRequest) -> Result<Vec<Released>, ClientError> {
        self.ask(&Request::Release { request })
    }

    pub fn reload(&self) -> Result<Reloaded, ClientError> {
        self.ask(&Request::Reload)
    }

    /// Has a decision about the mode taken into effect.
    pub fn decide(&self, decision: Decision) -> Result<Decided, ClientError> {
        self.ask(&Request::Decide { decision, on_behalf_of: on_behalf_of() })
    }

    pub fn events(&self, query: EventQuery) -> Result<EventLines, ClientError> {
        let (life, lines) = self.open(&Request::Events { query })?;
        // The next event may be far away. Whether the daemon is there the kernel tells.
        lines.get_ref().set_read_timeout(None).map_err(self.broken("read events of"))?;
        Ok(EventLines { lines, life })
    }

    fn ask<T: DeserializeOwned>(&self, ask: &Request) -> Result<T, ClientError> {
        self.open(ask).map(|(answer, _)| answer)
    }

    fn broken(&self, operation: &'static str) -> impl FnOnce(io::Error) -> ClientError + use<> {
        let path = self.path.clone();
        move |source| ClientError::Broken { operation, path, source }
    }

    /// Sends a request and reads the answer. What follows the answer is read from the returned connection.
    fn open<T: DeserializeOwned>(&self, ask: &Request) -> Result<(T, BufReader<UnixStream>), ClientError> {
        let broken = |operation| self.broken(operation);
        let connected = UnixStream::connect(&self.path);
        let mut stream = connected.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NoDaemon { path: self.path.clone(), source }
            }
            io::ErrorKind::PermissionDenied => {
                let what = format!("{source}; use root, or a member of the group of --socket-group");
                ClientError::Forbidden { path: self.path.clone(), what }
            }
            _ => broken("reach")(source),
        })?;
        stream.set_read_timeout(Some(LOOK.min(self.timeout))).map_err(broken("send a request to"))?;
        stream.set_write_timeout(Some(self.timeout)).map_err(broken("send a request to"))?;
        let line = protocol::write(ask).map_err(|e| broken("send a request to")(e.into()))?;
        // A busy daemon answers without reading; then writing fails, but there is an answer to read.
        let written = stream.write_all(&line);
        let mut answer = Vec::new();
        let (mut reader, begun) = (BufReader::new(stream), Instant::now());
        let read = loop {
            match reader.read_until(b'\n', &mut answer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Some(pid) = is_stopped(reader.get_ref()) {
                        return Err(ClientError::Stopped { path: self.path.clone(), pid });
                    }
                    if begun.elapsed() >= self.timeout {
                        break Err(error);
                    }
                }
                read => break read,
            }
        };
        if answer.is_empty() {
            written.map_err(broken("send a request to"))?;
        }
        read.and_then(|_| {
            answer.ends_with(b"\n").then_some(()).ok_or_else(|| io::Error::other("it has ended"))
        })
        .map_err(broken("read the answer of"))?;
        let answer = protocol::read_answer(&answer);
        let answer = answer.map_err(|Refusal { error: what, forbidden }| match self.path.clone() {
            path if forbidden => ClientError::Forbidden { path, what },
            path => ClientError::Response { path, what },
        })?;
        Ok((answer, reader))
    }
}

/// What to do where nobody answers. The kernel tells who has the lock.
fn advice(socket: &Path) -> String {
    match lock_holder(&socket.with_file_name(LOCK)) {
        Some(pid) => format!("orphand runs (pid {pid}), and its socket is gone: restart it"),
        None => "start it with `orphand run`, or give its socket with --socket".to_owned(),
    }
}

/// Who listens at the other end, if that process is kept from running.
fn is_stopped(stream: &UnixStream) -> Option<i32> {
    let pid = socket_peercred(stream).ok()?.pid.as_raw_pid();
    let listener = Proc::system().ok()?.process(u32::try_from(pid).ok()?).ok()?;
    listener.is_held().is_ok_and(|held| held).then_some(pid)
}

/// For whom root asks.
fn on_behalf_of() -> Option<String> {
    std::env::var("SUDO_USER").ok()
}

#[derive(Debug)]
pub struct EventLines {
    lines: BufReader<UnixStream>,
    pub life: Position,
}

impl Iterator for EventLines {
    type Item = String;

    /// The next line; nothing when the daemon has closed the connection. A line that was cut off is dropped.
    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).ok()?;
        line.pop().filter(|end| *end == '\n')?;
        Some(line)
    }
}

#[cfg(test)]
mod tests;

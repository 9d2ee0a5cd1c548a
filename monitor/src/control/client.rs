//! The client of the control socket.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use super::protocol::{self, Request, Response};
use crate::events::{EventQuery, Position};
use orphand_core::model::{
    Asked, Decided, Decision, Explained, History, HistoryQuery, Planned, ReapRequest, ReleaseRequest,
    Released, Reloaded, Status,
};

/// How long the daemon may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(65);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon listens at the socket.
    #[error("no orphand answers at {}: {source}; start it with `orphand run`, or give its socket with --socket", path.display())]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The socket may not be used by this user.
    #[error("cannot connect to orphand at {}: {source}; run this as root, or as a member of the group of its --socket-group", path.display())]
    Forbidden {
        /// The socket.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The connection broke.
    #[error("cannot {operation} orphand at {}: {source}; see the log of the daemon", path.display())]
    Broken {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The socket.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The daemon refused the request, or the answer cannot be read.
    #[error("orphand at {}: {what}", path.display())]
    Response {
        /// The socket.
        path: PathBuf,
        /// The daemon's error, or what is wrong with the answer.
        what: String,
    },
}

/// A client of one daemon. Every request uses a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    timeout: Duration,
}

impl Client {
    /// A client of the daemon at this socket.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), timeout: TIMEOUT }
    }

    /// Sets the timeout of an answer.
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The daemon's status.
    pub fn status(&self, pss: bool) -> Result<Status, ClientError> {
        match self.request(&Request::Status { pss })? {
            Response::Status { status } => Ok(*status),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The servers that a request selects.
    pub fn plan(&self, request: ReapRequest) -> Result<Vec<Planned>, ClientError> {
        self.planned(&Request::Plan { request })
    }

    /// Ends the servers that a request selects.
    pub fn reap(&self, request: ReapRequest) -> Result<Vec<Planned>, ClientError> {
        self.planned(&Request::Reap { request })
    }

    /// Reads the daemon's store.
    pub fn history(&self, query: HistoryQuery) -> Result<History, ClientError> {
        match self.request(&Request::History { query })? {
            Response::History { history } => Ok(*history),
            other => Err(self.unexpected(&other)),
        }
    }

    /// What the daemon knows of a process.
    pub fn explain(&self, process: Asked) -> Result<Vec<Explained>, ClientError> {
        match self.request(&Request::Explain { process })? {
            Response::Explained { explained } => Ok(explained),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Tells the daemon that its caller is done with the servers that a request selects.
    pub fn release(&self, request: ReleaseRequest) -> Result<Vec<Released>, ClientError> {
        match self.request(&Request::Release { request })? {
            Response::Released { released } => Ok(released),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Makes the daemon read its configuration again.
    pub fn reload(&self) -> Result<Reloaded, ClientError> {
        match self.request(&Request::Reload)? {
            Response::Reloaded { reloaded } => Ok(reloaded),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Has a decision about the mode taken into effect. root may say for whom it asks.
    pub fn decide(&self, decision: Decision, on_behalf_of: Option<String>) -> Result<Decided, ClientError> {
        match self.request(&Request::Decide { decision, on_behalf_of })? {
            Response::Decided { decided } => Ok(decided),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The events that `query` asks for, line by line as they come.
    pub fn events(&self, query: EventQuery) -> Result<EventLines, ClientError> {
        let (answer, lines) = self.open(&Request::Events { query })?;
        let life = match answer {
            Response::Events { life } => life,
            other => return Err(self.unexpected(&other)),
        };
        // The next event may be far away. Whether the daemon is there the kernel tells.
        let waits = lines.get_ref().set_read_timeout(None);
        waits.map_err(|source| ClientError::Broken {
            operation: "read events of",
            path: self.path.clone(),
            source,
        })?;
        Ok(EventLines { lines, life })
    }

    fn planned(&self, ask: &Request) -> Result<Vec<Planned>, ClientError> {
        match self.request(ask)? {
            Response::Plan { planned } => Ok(planned),
            other => Err(self.unexpected(&other)),
        }
    }

    fn unexpected(&self, answer: &Response) -> ClientError {
        let what = match answer {
            Response::Error { error } => error.clone(),
            _ => "the answer does not fit the request; use the same version of orphand for daemon and client"
                .to_owned(),
        };
        ClientError::Response { path: self.path.clone(), what }
    }

    fn request(&self, ask: &Request) -> Result<Response, ClientError> {
        self.open(ask).map(|(answer, _)| answer)
    }

    /// Sends a request and reads the answer. What follows the answer is read from the returned connection.
    fn open(&self, ask: &Request) -> Result<(Response, BufReader<UnixStream>), ClientError> {
        let broken = |operation| {
            let path = self.path.clone();
            move |source| ClientError::Broken { operation, path, source }
        };
        let connected = UnixStream::connect(&self.path);
        let mut stream = connected.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NoDaemon { path: self.path.clone(), source }
            }
            io::ErrorKind::PermissionDenied => ClientError::Forbidden { path: self.path.clone(), source },
            _ => broken("reach")(source),
        })?;
        stream.set_read_timeout(Some(self.timeout)).map_err(broken("send a request to"))?;
        stream.set_write_timeout(Some(self.timeout)).map_err(broken("send a request to"))?;
        let line = protocol::write(ask).map_err(|e| broken("send a request to")(e.into()))?;
        // A busy daemon answers without reading; then writing fails, but there is an answer to read.
        let written = stream.write_all(&line);
        let mut answer = Vec::new();
        let mut reader = BufReader::new(stream);
        let read = reader.read_until(b'\n', &mut answer);
        if answer.is_empty() {
            written.map_err(broken("send a request to"))?;
        }
        read.map_err(broken("read the answer of"))?;
        let answer = protocol::read(&answer);
        let answer = answer.map_err(|what| ClientError::Response { path: self.path.clone(), what })?;
        Ok((answer, reader))
    }
}

/// The events of a daemon, as they come.
#[derive(Debug)]
pub struct EventLines {
    lines: BufReader<UnixStream>,
    life: Position,
}

impl EventLines {
    /// Where the events of this daemon begin.
    pub const fn life(&self) -> Position {
        self.life
    }
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

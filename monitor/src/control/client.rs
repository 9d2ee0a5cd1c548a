//! The other side of the control socket: asks the running daemon.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use super::protocol::{self, Answer, Ask};
use orphand_core::model::{History, HistoryQuery, Planned, ReapRequest, Reloaded, Status};

/// How long the daemon may be silent.
const PATIENCE: Duration = Duration::from_secs(65);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no orphand answers at {}: {source}; start it with `orphand run`, or name its socket with --socket", path.display())]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// We may not ask.
    #[error("cannot ask orphand at {}: {source}; run this as root, or be a member of its socket_group", path.display())]
    Forbidden {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The connection broke.
    #[error("cannot {operation} orphand at {}: {source}; see what the daemon logged", path.display())]
    Broken {
        /// What was tried.
        operation: &'static str,
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The answer makes no sense.
    #[error("orphand at {}: {what}", path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What is wrong, or what the daemon refused.
        what: String,
    },
}

/// The way to a daemon. Every question is a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    patience: Duration,
}

impl Client {
    /// The daemon at this socket.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), patience: PATIENCE }
    }

    /// With less patience.
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// How it stands.
    pub fn status(&self, pss: bool) -> Result<Status, ClientError> {
        match self.ask(&Ask::Status { pss })? {
            Answer::Status { status } => Ok(*status),
            other => Err(self.nonsense(&other)),
        }
    }

    /// Which servers a request means.
    pub fn plan(&self, request: ReapRequest) -> Result<Vec<Planned>, ClientError> {
        self.planned(&Ask::Plan { request })
    }

    /// Has them ended.
    pub fn reap(&self, request: ReapRequest) -> Result<Vec<Planned>, ClientError> {
        self.planned(&Ask::Reap { request })
    }

    /// What its store tells.
    pub fn history(&self, query: HistoryQuery) -> Result<History, ClientError> {
        match self.ask(&Ask::History { query })? {
            Answer::History { history } => Ok(*history),
            other => Err(self.nonsense(&other)),
        }
    }

    /// Has it read its configuration again.
    pub fn reload(&self) -> Result<Reloaded, ClientError> {
        match self.ask(&Ask::Reload)? {
            Answer::Reloaded { reloaded } => Ok(reloaded),
            other => Err(self.nonsense(&other)),
        }
    }

    fn planned(&self, ask: &Ask) -> Result<Vec<Planned>, ClientError> {
        match self.ask(ask)? {
            Answer::Plan { planned } => Ok(planned),
            other => Err(self.nonsense(&other)),
        }
    }

    fn nonsense(&self, answer: &Answer) -> ClientError {
        let what = match answer {
            Answer::Error { error } => error.clone(),
            _ => "the answer is to another question; use the same orphand on both sides".to_owned(),
        };
        ClientError::Answer { path: self.path.clone(), what }
    }

    fn ask(&self, ask: &Ask) -> Result<Answer, ClientError> {
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
        stream.set_read_timeout(Some(self.patience)).map_err(broken("ask"))?;
        stream.set_write_timeout(Some(self.patience)).map_err(broken("ask"))?;
        let line = protocol::write(ask).map_err(|e| broken("ask")(e.into()))?;
        // A daemon that is busy answers without having read: then writing fails, and the answer is there.
        let written = stream.write_all(&line);
        let mut answer = Vec::new();
        let read = BufReader::new(stream).read_until(b'\n', &mut answer);
        if answer.is_empty() {
            written.map_err(broken("ask"))?;
        }
        read.map_err(broken("hear"))?;
        protocol::read(&answer).map_err(|what| ClientError::Answer { path: self.path.clone(), what })
    }
}

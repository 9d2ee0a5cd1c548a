//! The control server: metrics and the page over HTTP, and the control socket, on a thread of their own.
//!
//! Invariant: nothing here can delay the daemon's loop. It is reached only through a bounded queue of
//! [`Query`]s, of which it answers one each time after it has drained the ring. If the queue is full, this
//! thread answers "busy". Slow work (memory, encoding, stalled clients) happens on this thread.

pub mod client;
mod connections;
mod event_feed;
mod host_name;
mod http;
mod listener;
mod live;
mod loop_handle;
mod page;
mod peer;
pub mod protocol;
mod socket;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    thread,
};

use tokio::sync::{mpsc, oneshot};

pub use self::loop_handle::{LoopHandle, QueryError, measure};
use self::{peer::Peers, socket::ControlSocket};
use crate::{
    events::Latest,
    host::{HostError, Proc},
    sink::{metrics::Metrics, page::Page},
};
use orphand_core::model::{
    Asked, Decided, Decision, Explained, Planned, ReapRequest, ReleaseRequest, Released, Reloaded, Status,
};

/// How many queries may wait for the loop: one for each connection to the control socket.
const QUEUE: usize = 64;

/// How many connections may wait to be accepted: the kernel's own limit (`somaxconn`) is the same or less. A client whose
/// connection finds no room tries again after a second.
const BACKLOG: i32 = 4096;

/// A query to the daemon's loop.
#[derive(Debug)]
pub enum Query {
    /// The status, with memory as last measured.
    Status(oneshot::Sender<Status>),
    /// The servers that a request selects.
    Plan(ReapRequest, oneshot::Sender<Vec<Planned>>),
    /// What is known of a process.
    Explain(Asked, oneshot::Sender<Vec<Explained>>),
    /// End the servers that a request selects. The answer lists those selected at the start. Not done if the
    /// client no longer waits.
    Reap(ReapRequest, oneshot::Sender<Vec<Planned>>),
    /// This user is done with the servers that a request selects. The error is one line, and then nothing was done.
    Release(ReleaseRequest, u32, oneshot::Sender<Result<Vec<Released>, String>>),
    /// Read the configuration again. The error is one line, and then the old configuration stays.
    Reload(oneshot::Sender<Result<Reloaded, String>>),
    /// Take the decision of this person into effect. Not done if the client no longer waits.
    Decide(Decision, String, oneshot::Sender<Result<Decided, String>>),
}

/// Why the control server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be used.
    #[error(
        "cannot serve metrics on {address}: {source}; free the port, or give another one with --listen ADDR, or none"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// Another daemon answers at the control socket.
    #[error("another daemon answers at {}; stop it, or give another path with --socket", path.display())]
    Live {
        /// The socket.
        path: PathBuf,
    },
    /// The path of the control socket is another kind of file.
    #[error("{} exists and is not a socket; remove it, or give another path with --socket", path.display())]
    NoSocket {
        /// The file.
        path: PathBuf,
    },
    /// An operation on the socket failed.
    #[error("cannot {operation} {}: {source}; run orphand as root, or give another path with --socket", path.display())]
    Socket {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The group does not exist or cannot be looked up.
    #[error("cannot give the control socket to group \"{group}\": {why}; correct --socket-group")]
    Group {
        /// Its name.
        group: String,
        /// What is wrong.
        why: String,
    },
    /// /proc cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The thread or its runtime cannot be created.
    #[error("cannot start the thread that serves metrics and the control socket: {0}")]
    Thread(io::Error),
}

/// A control server that is bound but not serving yet. The daemon binds it before it starts to watch, so that
/// a conflict is found early.
#[derive(Debug)]
pub struct ControlServer {
    http: Option<TcpListener>,
    control: ControlSocket,
    peers: Peers,
}

/// A running control server. It stops when this is dropped.
#[derive(Debug)]
pub struct RunningServer {
    _socket: socket::SocketFile,
    _stop: oneshot::Sender<()>,
}

impl ControlServer {
    /// Binds the address and the socket. Root, the daemon's user and members of `group` may send every request;
    /// others may release servers of their own.
    pub fn bind(listen: Option<SocketAddr>, socket: &Path, group: Option<&str>) -> Result<Self, ServerError> {
        let peers = Peers::new(group)?;
        let control = ControlSocket::bind(socket)?;
        let http = listen.map(|address| {
            let bound = TcpListener::bind(address);
            bound
                .and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    // The standard library asks for 128.
                    rustix::net::listen(&listener, BACKLOG)?;
                    Ok(listener)
                })
                .map_err(|source| ServerError::Listen { address, source })
        });
        Ok(Self { http: http.transpose()?, control, peers })
    }

    /// Serves from a thread of its own. The history is read from the store in `state_dir`; queries come from
    /// the returned receiver.
    pub fn start(
        self,
        metrics: Metrics,
        page: Page,
        events: Latest,
        state_dir: &Path,
    ) -> Result<(RunningServer, mpsc::Receiver<Query>), ServerError> {
        let Self { http, control, peers } = self;
        let (queries, asked) = mpsc::channel(QUEUE);
        let daemon_loop = LoopHandle::new(queries, Proc::system()?, state_dir);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ServerError::Thread)?;
        // Registered before the thread runs, so that a failure is returned to the caller.
        let guard = runtime.enter();
        let http = http.map(tokio::net::TcpListener::from_std).transpose().map_err(ServerError::Thread)?;
        let ControlSocket { listener, file } = control;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(ServerError::Thread)?;
        drop(guard);
        if let Some(address) = http.as_ref().and_then(|http| http.local_addr().ok()) {
            tracing::info!("metrics are served on http://{address}/metrics, the page on http://{address}/");
        }
        let serve = async move {
            let http = async {
                match http {
                    Some(listener) => {
                        let (router, updates) = http::router(daemon_loop.clone(), metrics, page);
                        tokio::join!(http::serve(listener, router), updates);
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = http => {}
                () = listener::serve(listener, daemon_loop.clone(), peers, events) => {}
                _ = stopped => {}
            }
        };
        let thread = thread::Builder::new().name("orphand-control".to_owned());
        thread
            .spawn(move || {
                runtime.block_on(serve);
                // A measurement of memory that still runs is abandoned.
                runtime.shutdown_background();
            })
            .map_err(ServerError::Thread)?;
        Ok((RunningServer { _socket: file, _stop: stop }, asked))
    }
}

#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod tests;

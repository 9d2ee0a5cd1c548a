//! The daemon's counter: metrics over HTTP and the control socket, on a thread of their own.
//!
//! Invariant: nothing here can delay the daemon's loop. It is reached only through a bounded queue of [`Query`]s which it
//! answers between two looks into the ring, one a turn; a full queue is answered with "busy" by this side, and what is slow
//! (memory, encoding, clients that stall) happens here. For the daemon's shell and the verbs that ask it.

mod asker;
pub mod client;
mod host;
mod http;
mod listener;
mod peer;
mod places;
pub mod protocol;
mod socket;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    thread,
};

use tokio::sync::{mpsc, oneshot};

pub use self::asker::{AskError, Asker, measure};
use self::{peer::Peers, socket::ControlSocket};
use crate::{
    host::{HostError, Proc},
    sink::metrics::Metrics,
};
use orphand_core::model::{Planned, ReapRequest, Reloaded, Status};

/// Questions that may wait for the loop: one of each connection to the control socket.
const QUEUE: usize = 64;

/// A question to the daemon's loop.
#[derive(Debug)]
pub enum Query {
    /// How it stands; memory as last measured.
    Status(oneshot::Sender<Status>),
    /// Which servers this means.
    Plan(ReapRequest, oneshot::Sender<Vec<Planned>>),
    /// End them. The answer says which that were when it began. Not done if nobody waits for the answer any more.
    Reap(ReapRequest, oneshot::Sender<Vec<Planned>>),
    /// Read the configuration again; the error is one line, and the old one stays.
    Reload(oneshot::Sender<Result<Reloaded, String>>),
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// The address cannot be had.
    #[error(
        "cannot serve metrics on {address}: {source}; free the port, or give another one with --listen ADDR, or none"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Somebody answers at the control socket.
    #[error("another daemon answers at {}; stop it, or give another path with --socket", path.display())]
    Live {
        /// The socket.
        path: PathBuf,
    },
    /// There is something else.
    #[error("{} is there and no socket; remove it, or give another path with --socket", path.display())]
    NoSocket {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {operation} {}: {source}; run orphand as root, or give another path with --socket", path.display())]
    Socket {
        /// What was tried.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The group is not known.
    #[error(
        "cannot give the control socket to group \"{group}\": {why}; correct socket_group in the configuration"
    )]
    Group {
        /// Its name.
        group: String,
        /// What is wrong.
        why: String,
    },
    /// /proc cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// There is no thread or no runtime.
    #[error("cannot start the thread that serves metrics and the control socket: {0}")]
    Thread(io::Error),
}

/// Both doors, held but not served yet: whoever cannot have them should not start to watch.
#[derive(Debug)]
pub struct Front {
    http: Option<TcpListener>,
    control: ControlSocket,
    peers: Peers,
}

/// A served front. Dropping it closes the doors.
#[derive(Debug)]
pub struct Serving {
    _socket: socket::SocketFile,
    _stop: oneshot::Sender<()>,
}

impl Front {
    /// Takes the address and the socket. `group` is whose members may use the socket, beside root and our user.
    pub fn bind(listen: Option<SocketAddr>, socket: &Path, group: Option<&str>) -> Result<Self, FrontError> {
        let peers = Peers::new(group)?;
        let control = ControlSocket::bind(socket, peers.group())?;
        let http = listen.map(|address| {
            let bound = TcpListener::bind(address);
            bound
                .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                .map_err(|source| FrontError::Listen { address, source })
        });
        Ok(Self { http: http.transpose()?, control, peers })
    }

    /// Serves from a thread of its own, the past out of the store in `state_dir`; the questions come out of the receiver.
    pub fn start(
        self,
        metrics: Metrics,
        state_dir: &Path,
    ) -> Result<(Serving, mpsc::Receiver<Query>), FrontError> {
        let Self { http, control, peers } = self;
        let (queries, asked) = mpsc::channel(QUEUE);
        let way = Asker::new(queries, Proc::system()?, state_dir);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(FrontError::Thread)?;
        // Registered before the thread runs, so that a failure is told to whoever starts the daemon.
        let guard = runtime.enter();
        let http = http.map(tokio::net::TcpListener::from_std).transpose().map_err(FrontError::Thread)?;
        let ControlSocket { listener, file } = control;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(FrontError::Thread)?;
        drop(guard);
        if let Some(address) = http.as_ref().and_then(|http| http.local_addr().ok()) {
            tracing::info!("metrics are served on http://{address}/metrics");
        }
        let serve = async move {
            let http = async {
                match http {
                    Some(listener) => http::serve(listener, http::router(way.clone(), metrics)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = http => {}
                () = listener::serve(listener, way.clone(), peers) => {}
                _ = stopped => {}
            }
        };
        let thread = thread::Builder::new().name("orphand-front".to_owned());
        thread
            .spawn(move || {
                runtime.block_on(serve);
                // A look at memory that still runs is left to the end of the process.
                runtime.shutdown_background();
            })
            .map_err(FrontError::Thread)?;
        Ok((Serving { _socket: file, _stop: stop }, asked))
    }
}

#[cfg(test)]
mod tests;

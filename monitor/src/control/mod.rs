//! The control server: metrics and the page over HTTP, and the control socket, on a thread of their own.
//!
//! Invariant: nothing here can delay the daemon's loop. It is reached only through a bounded queue of
//! [`Query`]s, of which it answers one each time after it has drained the ring. If the queue is full, this
//! thread answers "busy". Slow work (memory, encoding, stalled clients) happens on this thread.

mod caller;
pub mod client;
mod connections;
mod event_feed;
mod http;
mod listener;
mod live;
mod loop_handle;
mod page;
pub mod protocol;
mod socket;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use self::{loop_handle::LoopHandle, socket::ControlSocket, socket::Peers};
pub use self::{
    loop_handle::measure,
    protocol::{Answer, Request},
};
use crate::{events::Latest, host::Proc, os::start, sink::metrics::Metrics};

/// How many queries may wait for the loop: one for each connection to the control socket.
const QUEUE: usize = 64;

/// How many connections may wait to be accepted: the kernel's own limit (`somaxconn`) is the same or less. A client whose
/// connection finds no room tries again after a second.
const BACKLOG: i32 = 4096;

/// The pause between two attempts to take an address that another program has.
const TAKEN: Duration = Duration::from_secs(1);

/// A query to the daemon's loop: what this user asks for. The error is one line, and then nothing was done.
#[derive(Debug)]
pub struct Query {
    pub request: Request,
    pub user: u32,
    pub reply: Reply,
}

pub type Reply = oneshot::Sender<Result<Answer, String>>;

const NO_THREAD: &str = "cannot start the thread that serves metrics and the control socket";

/// A control server that is bound but not serving yet: bound before the daemon watches, so that a conflict is found early.
#[derive(Debug)]
pub struct ControlServer {
    http: Option<TcpListener>,
    /// The address, if another program has it.
    taken: Option<SocketAddr>,
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
    /// Binds the address and the socket, to which members of `group` may send every request, as root and our own user may.
    pub fn bind(listen: Option<SocketAddr>, socket: &Path, group: Option<&str>) -> Result<Self> {
        let peers = Peers::new(group)?;
        let control = ControlSocket::bind(socket)?;
        let (mut http, mut taken) = (None, None);
        match listen.map(|address| (address, listener_at(address))) {
            Some((address, Err(error))) => {
                let advice = "free the port, or give another one with --listen ADDR, or none";
                let why = format!("cannot serve metrics on {address}: {error}; {advice}");
                // Any user may have it, and keeps nobody from watching.
                if error.kind() != io::ErrorKind::AddrInUse {
                    bail!(why);
                }
                tracing::warn!("{why}; going on without: it is tried again each second");
                taken = Some(address);
            }
            Some((_, Ok(listener))) => http = Some(listener),
            None => {}
        }
        Ok(Self { http, taken, control, peers })
    }

    /// Serves from a thread of its own. The past is in `state_dir`; queries come from the returned receiver.
    pub fn start(
        self,
        metrics: Metrics,
        events: Latest,
        state_dir: &Path,
    ) -> Result<(RunningServer, mpsc::Receiver<Query>)> {
        let Self { http, taken, control, peers } = self;
        let (queries, asked) = mpsc::channel(QUEUE);
        let daemon_loop = LoopHandle::new(queries, Proc::system()?, state_dir);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context(NO_THREAD)?;
        // Registered before the thread runs, so that a failure is returned to the caller.
        let guard = runtime.enter();
        let http = http.map(tokio::net::TcpListener::from_std).transpose().context(NO_THREAD)?;
        let ControlSocket { listener, file } = control;
        let listener = tokio::net::UnixListener::from_std(listener).context(NO_THREAD)?;
        drop(guard);
        http.iter().for_each(announce);
        let news = events.news();
        let site = Arc::new(page::Site::new(daemon_loop.clone(), metrics, events.clone()));
        let serve = async move {
            let http = async {
                let listener = match (http, taken) {
                    (Some(listener), _) => listener,
                    (None, Some(address)) => until_free(address).await,
                    (None, None) => std::future::pending().await,
                };
                tokio::join!(http::serve(listener, Arc::clone(&site)), site.update(news));
            };
            tokio::select! {
                () = http => {}
                () = listener::serve(listener, daemon_loop, peers, events) => {}
                _ = stopped => {}
            }
        };
        let run = move || {
            runtime.block_on(serve);
            // A measurement of memory that still runs is abandoned.
            runtime.shutdown_background();
        };
        start("control", run).context(NO_THREAD)?;
        Ok((RunningServer { _socket: file, _stop: stop }, asked))
    }
}

fn listener_at(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // The standard library asks for 128.
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

async fn until_free(address: SocketAddr) -> tokio::net::TcpListener {
    loop {
        sleep(TAKEN).await;
        let listener = listener_at(address).and_then(tokio::net::TcpListener::from_std);
        if let Ok(listener) = listener {
            announce(&listener);
            return listener;
        }
    }
}

fn announce(listener: &tokio::net::TcpListener) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!("metrics are served on http://{address}/metrics, the page on http://{address}/");
    }
}

#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod tests;

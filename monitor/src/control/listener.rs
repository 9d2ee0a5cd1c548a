//! Serves the control socket.
//!
//! Limits: the number of connections in total and per user, one request each, its size, and its time. A
//! client that exceeds them gets an error line or is disconnected. No user can keep out another one.

use std::time::Duration;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    time::{sleep, timeout},
};

use super::{
    connections::{Connections, RequestRead},
    event_feed::Feed,
    loop_handle::{LoopHandle, QueryError},
    peer::Peers,
    protocol::{self, REQUEST_MAX, Request, Response},
};
use crate::events::Latest;
use orphand_core::model::HistoryQuery;

/// The most connections at a time.
const CONNECTIONS: usize = 64;
/// The most connections of one user at a time. Those that have not sent a request are replaced by newer ones.
const CONNECTIONS_OF_USER: usize = 8;
/// The timeout for the request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout for finding the answer. The proportional memory of 600 large processes takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout for sending the answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a connection could not be accepted, for instance because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until the runtime ends.
pub(super) async fn serve(listener: UnixListener, daemon_loop: LoopHandle, peers: Peers, events: Latest) {
    let feed = Feed::new(events);
    let mut connections: Connections<u32> = Connections::new(CONNECTIONS_OF_USER, CONNECTIONS, false);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("cannot accept a connection to the control socket: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Clients without credentials count as one user.
        let uid = stream.peer_cred().map_or(u32::MAX, |peer| peer.uid());
        if !connections.make_room(uid) {
            // The buffer of a new connection is empty, so a short line always fits.
            if let Ok(line) = protocol::write(error(&QueryError::Busy)) {
                let _ = stream.try_write(&line);
            }
            continue;
        }
        let (daemon_loop, feed, question) = (daemon_loop.clone(), feed.clone(), RequestRead::default());
        let request_read = question.clone();
        let task = tokio::spawn(async move {
            serve_connection(stream, &daemon_loop, &feed, peers, &request_read).await;
        });
        connections.insert(uid, question, &task);
    }
}

fn error(error: &impl ToString) -> Response {
    Response::Error { error: error.to_string() }
}

/// Serves one request. Errors of the connection are ignored, because only the client is affected.
async fn serve_connection(
    mut stream: UnixStream,
    daemon_loop: &LoopHandle,
    feed: &Feed,
    peers: Peers,
    request_read: &RequestRead,
) {
    let answer = match timeout(REQUEST_TIMEOUT, read_request(&mut stream, peers)).await {
        Ok(Ok(Request::Events { query })) => {
            request_read.set();
            match feed.admit(stream.peer_cred().map_or(u32::MAX, |peer| peer.uid())) {
                // It ends when the client goes; then there is nobody to tell of an error.
                Some(reader) => return drop(reader.serve(&mut stream, &query).await),
                None => error(&QueryError::Busy),
            }
        }
        Ok(Ok(ask)) => {
            request_read.set();
            let uid = stream.peer_cred().map_or(u32::MAX, |peer| peer.uid());
            timeout(ANSWER_TIMEOUT, answer(ask, uid, daemon_loop))
                .await
                .unwrap_or_else(|_| error(&QueryError::Late))
        }
        Ok(Err(why)) => error(&why),
        Err(_) => error(&"no request within 5 s"),
    };
    if let Ok(line) = protocol::write(answer) {
        let _ = timeout(SEND_TIMEOUT, async {
            stream.write_all(&line).await?;
            stream.shutdown().await
        })
        .await;
    }
}

/// Reads the request of a client that is allowed to send one.
async fn read_request(stream: &mut UnixStream, peers: Peers) -> Result<Request, String> {
    let peer =
        stream.peer_cred().map_err(|error| format!("refused: cannot read your credentials: {error}"))?;
    let (uid, gid) = (peer.uid(), peer.gid());
    // The group database may be slow.
    let allowed = tokio::task::spawn_blocking(move || peers.allows(uid, gid)).await;
    if !matches!(allowed, Ok(true)) {
        return Err(format!(
            "refused: user {uid} may not use this socket; use root, or a member of the configuration's socket_group"
        ));
    }
    let mut line = Vec::new();
    let most = u64::try_from(REQUEST_MAX).unwrap_or(u64::MAX);
    let mut reader = BufReader::new(stream).take(most);
    reader.read_until(b'\n', &mut line).await.map_err(|error| format!("cannot read the request: {error}"))?;
    if line.len() >= REQUEST_MAX {
        return Err(format!("the request is too long: at most {REQUEST_MAX} bytes"));
    }
    protocol::read(&line)
}

/// Reads the store without the loop. While too many others read, the answer is an error.
async fn history(query: HistoryQuery, daemon_loop: &LoopHandle) -> Response {
    match daemon_loop.history(query).await {
        Ok(Ok(history)) => Response::History { history: Box::new(history) },
        Ok(Err(why)) => error(&why),
        Err(why) => error(&why),
    }
}

async fn answer(ask: Request, uid: u32, daemon_loop: &LoopHandle) -> Response {
    let answer = match ask {
        Request::History { query } => return history(query, daemon_loop).await,
        // Not one answer: served by the feed.
        Request::Events { .. } => Err(QueryError::Busy),
        Request::Reload => {
            return match daemon_loop.reload().await {
                Ok(Ok(reloaded)) => Response::Reloaded { reloaded },
                Ok(Err(why)) => error(&why),
                Err(why) => error(&why),
            };
        }
        Request::Decide { decision, on_behalf_of } => {
            return match daemon_loop.decide(decision, uid, on_behalf_of).await {
                Ok(Ok(decided)) => Response::Decided { decided },
                Ok(Err(why)) => error(&why),
                Err(why) => error(&why),
            };
        }
        Request::Status { pss } => {
            daemon_loop.status(pss).await.map(|status| Response::Status { status: Box::new(status) })
        }
        Request::Plan { request } => {
            daemon_loop.plan(request).await.map(|planned| Response::Plan { planned })
        }
        Request::Explain { process } => {
            daemon_loop.explain(process).await.map(|explained| Response::Explained { explained })
        }
        Request::Reap { request } => {
            daemon_loop.reap(request).await.map(|planned| Response::Plan { planned })
        }
    };
    answer.unwrap_or_else(|why| error(&why))
}

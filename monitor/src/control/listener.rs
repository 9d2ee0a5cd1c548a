//! Serves the control socket.
//!
//! Every user may connect, and release servers of his own. Everything else is for those whom [`Peers`] allows.
//!
//! Limits: the number of connections in total, per user and in a second, one request each, its size, and its time. A
//! client that exceeds them gets an error line or is disconnected. No user can keep out another one.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncWriteExt,
    net::UnixListener,
    time::{sleep, timeout},
};

use super::{
    caller::Caller,
    connections::{ACCEPT_PAUSE, Connections, RequestRead},
    event_feed::{self, Feed},
    loop_handle::{BUSY, LATE, LoopHandle},
    protocol::{self, Answer, RELEASE_MAX, REQUEST_MAX, Refusal, Request},
    socket::Peers,
};
use crate::{
    events::Latest,
    host::{own_namespace, pid_namespace_of},
    os::budgets::{Budget, Budgets},
};
use orphand_core::model::Share;

const CONNECTIONS: usize = 64;
/// The connections of one user, but for root and the daemon's own user: 20 in a second, the first of them at once.
const PACE: Budget = Budget { allowance: Duration::from_millis(950), part: 1 };
const CONNECTION: Duration = Duration::from_millis(50);
/// The most connections of one user at a time. Those that have not sent a request are replaced by newer ones.
const CONNECTIONS_OF_USER: usize = 8;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout for finding the answer. The proportional memory of 600 large processes takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn serve(listener: UnixListener, daemon_loop: LoopHandle, peers: Peers, events: Latest) {
    let feed = Feed::new(events);
    // Others compete for places among themselves.
    let mut ours: Connections<u32> = Connections::new(CONNECTIONS_OF_USER, CONNECTIONS, false);
    let mut others: Connections<Share> = Connections::new(CONNECTIONS_OF_USER, CONNECTIONS, false);
    let mut pace = Budgets::new(PACE, None);
    loop {
        let mut caller = match listener.accept().await {
            Ok((stream, _)) => Caller::new(stream),
            Err(error) => {
                tracing::warn!("cannot accept a connection to the control socket: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Clients without credentials count as one user.
        let uid = caller.peer().map_or(u32::MAX, |peer| peer.uid());
        let (is_ours, share) = (peers.are_ours(uid), Share::of(uid));
        let has_room = if is_ours {
            ours.make_room(uid)
        } else {
            in_time(&mut pace, share, Instant::now()) && others.make_room(share)
        };
        if !has_room {
            // The buffer of a new connection is empty, so a short line always fits.
            let _ = caller.stream().and_then(|stream| stream.try_write(&error(BUSY)));
            continue;
        }
        let (daemon_loop, feed, peers) = (daemon_loop.clone(), feed.clone(), peers.clone());
        let question = RequestRead::default();
        let request_read = question.clone();
        let task = tokio::spawn(async move {
            serve_connection(caller, &daemon_loop, &feed, &peers, &request_read).await;
        });
        if is_ours {
            ours.insert(uid, question, &task);
        } else {
            others.insert(share, question, &task);
        }
    }
}

/// Whether this user has not come too often.
fn in_time(pace: &mut Budgets, user: Share, now: Instant) -> bool {
    let comes = pace.waits(user, now).is_zero();
    if comes {
        pace.charge(user, now, CONNECTION);
    }
    comes
}

fn error(error: impl Into<Refusal>) -> Vec<u8> {
    // A text can always be written.
    protocol::write(&Answer::Error(error.into())).unwrap_or_default()
}

/// Serves one request. Errors of the connection are ignored, because only the client is affected.
async fn serve_connection(
    mut caller: Caller,
    daemon_loop: &LoopHandle,
    feed: &Feed,
    peers: &Peers,
    request_read: &RequestRead,
) {
    let answer = match timeout(REQUEST_TIMEOUT, read_request(&caller, peers)).await {
        Ok(Ok((Request::Events { query }, _))) => {
            request_read.store(true, Ordering::Relaxed);
            match feed.admit(caller.peer().map_or(u32::MAX, |peer| peer.uid())) {
                // In a task of its own: it takes no place of a question. It ends when the client goes; then there is nobody to
                // tell of an error.
                Some(right) => {
                    let feed = feed.clone();
                    tokio::spawn(async move {
                        if let Ok(stream) = caller.stream() {
                            drop(feed.serve(stream, &query).await);
                        }
                        drop(right);
                    });
                    return;
                }
                None => error(event_feed::FULL),
            }
        }
        Ok(Ok((ask, user))) => {
            request_read.store(true, Ordering::Relaxed);
            let answered = timeout(ANSWER_TIMEOUT, daemon_loop.answer(ask, user)).await;
            let answered = answered.unwrap_or_else(|_| Err(LATE.to_owned()));
            let line =
                answered.and_then(|answer| protocol::write(&answer).map_err(|error| error.to_string()));
            line.unwrap_or_else(error)
        }
        Ok(Err(why)) => error(why),
        Err(_) => error("no request within 5 s"),
    };
    let _ = timeout(SEND_TIMEOUT, async {
        let stream = caller.stream()?;
        stream.write_all(&answer).await?;
        stream.shutdown().await
    })
    .await;
}

/// Reads a request that this client is allowed to send, and by which user.
async fn read_request(caller: &Caller, peers: &Peers) -> Result<(Request, u32), Refusal> {
    let peer = caller.peer();
    let peer = peer.map_err(|error| format!("refused: cannot read your credentials: {error}"))?;
    let (uid, gid) = (peer.uid(), peer.gid());
    let longest = if peers.may_be_allowed(uid) { REQUEST_MAX } else { RELEASE_MAX };
    let line = caller.line(longest).await.map_err(|error| format!("cannot read the request: {error}"))?;
    if line.len() >= longest {
        return Err(format!("the request is too long: at most {longest} bytes").into());
    }
    let request = protocol::read(&line)?;
    match request {
        Request::Release { .. } => numbers_are_ours(peer.pid())?,
        _ if peers.allows(uid, gid).await => {}
        _ => {
            let error = format!(
                "refused: user {uid} may not use this socket but to release servers of its own; use root, or a member \
                 of the group of --socket-group"
            );
            return Err(Refusal { error, forbidden: true });
        }
    }
    Ok((request, uid))
}

/// Whether a process number means the same to this client: in a container it would name another process.
fn numbers_are_ours(pid: Option<i32>) -> Result<(), String> {
    let theirs = pid.and_then(|pid| u32::try_from(pid).ok()).and_then(|pid| pid_namespace_of(pid).ok());
    if theirs.is_some() && theirs == own_namespace("pid").ok() {
        return Ok(());
    }
    Err("refused: process numbers mean other processes to you, as in a container; ask from the host, and stay \
         until the answer comes"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_in_a_hurry_waits_and_others_do_not() {
        let (mut pace, began) = (Budgets::new(PACE, None), Instant::now());
        let mut comes =
            |uid, after: u64| in_time(&mut pace, Share::of(uid), began + Duration::from_millis(after));
        assert!((0..20).all(|_| comes(1000, 0)));
        assert!(!comes(1000, 0) && comes(1001, 0));
        assert!(comes(1000, 51) && !comes(1000, 51), "20 a second");
        // A range of numbers is one user.
        assert!((1..21).all(|number| comes(100_000 + number, 51)) && !comes(100_021, 51));
    }
}

//! Serves the control socket.
//!
//! Limits: so many connections at a time, of each user a few, one question each, so long, within so much time. Whoever exceeds
//! them gets an error line, or is cut off; no user keeps out another one.

use std::time::Duration;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    time::{sleep, timeout},
};

use super::{
    asker::{AskError, Asker},
    peer::Peers,
    places::{Asked, Places},
    protocol::{self, Answer, Ask, REQUEST_MAX},
};
use orphand_core::model::HistoryQuery;

/// Connections at a time.
const CONNECTIONS: usize = 64;
/// Connections of one user at a time. Those that have not asked yet make room for the next.
const OF_USER: usize = 8;
/// For the question to be there.
const ASKING: Duration = Duration::from_secs(5);
/// For the answer to be found. Proportional memory of 600 large processes takes seconds.
const ANSWERING: Duration = Duration::from_secs(60);
/// For the answer to be read.
const READING: Duration = Duration::from_secs(10);
/// After a connection could not be taken (no descriptors): what is open may be closed by then.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until the end of the runtime.
pub(super) async fn serve(listener: UnixListener, asker: Asker, peers: Peers) {
    let mut places: Places<u32> = Places::new(OF_USER, CONNECTIONS, false);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("cannot take a connection to the control socket: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        // Who cannot be told is one user.
        let uid = stream.peer_cred().map_or(u32::MAX, |peer| peer.uid());
        if !places.make_room(uid) {
            // Nothing can be in its buffer yet: a short line always fits.
            if let Ok(line) = protocol::write(error(&AskError::Busy)) {
                let _ = stream.try_write(&line);
            }
            continue;
        }
        let (asker, question) = (asker.clone(), Asked::default());
        let heard = question.clone();
        let task = tokio::spawn(async move { attend(stream, &asker, peers, &heard).await });
        places.take(uid, question, &task);
    }
}

fn error(error: &impl ToString) -> Answer {
    Answer::Error { error: error.to_string() }
}

/// One connection. That it breaks is the peer's affair.
async fn attend(mut stream: UnixStream, asker: &Asker, peers: Peers, heard: &Asked) {
    let answer = match timeout(ASKING, question(&mut stream, peers)).await {
        Ok(Ok(ask)) => {
            heard.set();
            timeout(ANSWERING, answer(ask, asker)).await.unwrap_or_else(|_| error(&AskError::Late))
        }
        Ok(Err(why)) => error(&why),
        Err(_) => error(&"no question within 5 s"),
    };
    if let Ok(line) = protocol::write(answer) {
        let _ = timeout(READING, async {
            stream.write_all(&line).await?;
            stream.shutdown().await
        })
        .await;
    }
}

/// Reads the question of a peer that may ask.
async fn question(stream: &mut UnixStream, peers: Peers) -> Result<Ask, String> {
    let peer =
        stream.peer_cred().map_err(|error| format!("refused: your credentials are not known: {error}"))?;
    let (uid, gid) = (peer.uid(), peer.gid());
    // The database of groups may be slow.
    let allowed = tokio::task::spawn_blocking(move || peers.allows(uid, gid)).await;
    if !matches!(allowed, Ok(true)) {
        return Err(format!(
            "refused: user {uid} may not; ask as root, or be a member of the socket_group of the configuration"
        ));
    }
    let mut line = Vec::new();
    let most = u64::try_from(REQUEST_MAX).unwrap_or(u64::MAX);
    let mut reader = BufReader::new(stream).take(most);
    reader
        .read_until(b'\n', &mut line)
        .await
        .map_err(|error| format!("the question cannot be read: {error}"))?;
    if line.len() >= REQUEST_MAX {
        return Err(format!("the question is too long: at most {REQUEST_MAX} bytes"));
    }
    protocol::read(&line)
}

/// Read from the store's file, not by the loop. Who comes while others still read is told so.
async fn past(query: HistoryQuery, asker: &Asker) -> Answer {
    match asker.history(query).await {
        Ok(Ok(history)) => Answer::History { history: Box::new(history) },
        Ok(Err(why)) => error(&why),
        Err(why) => error(&why),
    }
}

async fn answer(ask: Ask, asker: &Asker) -> Answer {
    let answer = match ask {
        Ask::History { query } => return past(query, asker).await,
        Ask::Reload => {
            return match asker.reload().await {
                Ok(Ok(reloaded)) => Answer::Reloaded { reloaded },
                Ok(Err(why)) => error(&why),
                Err(why) => error(&why),
            };
        }
        Ask::Status { pss } => {
            asker.status(pss).await.map(|status| Answer::Status { status: Box::new(status) })
        }
        Ask::Plan { request } => asker.plan(request).await.map(|planned| Answer::Plan { planned }),
        Ask::Reap { request } => asker.reap(request).await.map(|planned| Answer::Plan { planned }),
    };
    answer.unwrap_or_else(|why| error(&why))
}

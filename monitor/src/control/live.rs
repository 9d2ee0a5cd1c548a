//! Streams of server-sent events to open pages.
//!
//! Invariant: a page that does not take what it is sent is let go; nobody waits for it. All pages are sent the same
//! bytes, which exist once.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame};
use serde::Serialize;
use tokio::sync::{Notify, mpsc};

use crate::sink::page::{Happening, Heard};

/// How many pages may be open.
const READERS: usize = 128;
/// How many messages may wait for a page.
const QUEUE: usize = 32;
/// How many of the latest events a new page is told.
const RECENT: usize = 100;

/// The open pages, and what a new one is told.
#[derive(Debug, Default)]
pub(super) struct Live {
    readers: Mutex<Vec<mpsc::Sender<Bytes>>>,
    recent: Mutex<Recent>,
    /// A page was opened.
    pub(super) joined: Notify,
}

#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<Numbered>,
    /// How many events there were.
    count: u64,
}

/// An event with its number.
#[derive(Clone, Debug, Serialize)]
struct Numbered {
    id: u64,
    #[serde(flatten)]
    happening: Happening,
}

#[derive(Serialize)]
struct Batch<'a> {
    /// Whether these are the latest events, which replace those that the page has.
    recent: bool,
    events: &'a [Numbered],
    /// How many are missing after them.
    missed: u64,
}

impl Live {
    /// A stream that begins with the latest events and `first`; `None` if too many pages are open.
    pub(super) fn join(&self, first: Bytes) -> Option<Stream> {
        let mut readers = lock(&self.readers);
        readers.retain(|reader| !reader.is_closed());
        if readers.len() >= READERS {
            return None;
        }
        let (reader, stream) = mpsc::channel(QUEUE);
        let recent = lock(&self.recent);
        let events =
            message("events", &Batch { recent: true, events: &Vec::from(recent.events.clone()), missed: 0 });
        // There is room for both.
        for bytes in [events, first] {
            let _ = reader.try_send(bytes);
        }
        readers.push(reader);
        self.joined.notify_one();
        Some(Stream(stream))
    }

    /// Tells all pages of events.
    pub(super) fn tell(&self, heard: Heard) {
        let mut recent = lock(&self.recent);
        let mut numbered = Vec::with_capacity(heard.events.len());
        for happening in heard.events {
            recent.count += 1;
            numbered.push(Numbered { id: recent.count, happening });
        }
        recent.events.extend(numbered.iter().cloned());
        let excess = recent.events.len().saturating_sub(RECENT);
        recent.events.drain(..excess);
        drop(recent);
        self.send(&message("events", &Batch { recent: false, events: &numbered, missed: heard.missed }));
    }

    /// Sends the same to all pages. One with no room left is let go; it connects again.
    pub(super) fn send(&self, bytes: &Bytes) {
        lock(&self.readers).retain(|reader| reader.try_send(bytes.clone()).is_ok());
    }

    pub(super) fn has_readers(&self) -> bool {
        lock(&self.readers).iter().any(|reader| !reader.is_closed())
    }
}

/// A message of a stream.
pub(super) fn message(name: &str, data: &impl Serialize) -> Bytes {
    match serde_json::to_string(data) {
        // JSON has no line feeds.
        Ok(json) => format!("event: {name}\ndata: {json}\n\n").into(),
        Err(error) => {
            tracing::error!(%error, "cannot write a message for the page");
            Bytes::new()
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of a stream.
#[derive(Debug)]
pub(super) struct Stream(mpsc::Receiver<Bytes>);

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_takes_nothing_is_let_go() {
        let live = Live::default();
        let mut taken = live.join(Bytes::from_static(b"first")).unwrap();
        let mut ignored = live.join(Bytes::from_static(b"first")).unwrap();
        for _ in 0..QUEUE {
            live.send(&Bytes::from_static(b"more"));
            let _ = taken.0.recv().await.unwrap();
        }
        assert_eq!(lock(&live.readers).len(), 1);
        let mut count = 0;
        while ignored.0.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, QUEUE);
        drop(taken);
        assert!(!live.has_readers());
    }

    #[test]
    fn pages_are_bounded_and_who_leaves_makes_room() {
        let live = Live::default();
        let mut open: Vec<_> = (0..READERS).map(|_| live.join(Bytes::new()).unwrap()).collect();
        assert!(live.join(Bytes::new()).is_none());
        open.pop();
        assert!(live.join(Bytes::new()).is_some());
    }
}

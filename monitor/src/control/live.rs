//! Streams of server-sent events to open pages.
//!
//! Invariant: a page that does not take what it is sent is let go; nobody waits for it. All pages are sent the same
//! text, which exists once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

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
    readers: Mutex<Vec<mpsc::Sender<Arc<str>>>>,
    recent: Mutex<Recent>,
    /// A page was opened.
    pub(super) joined: Notify,
}

#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<Numbered>,
    count: u64,
}

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
    pub(super) fn join(&self, first: Arc<str>) -> Option<mpsc::Receiver<Arc<str>>> {
        let mut readers = lock(&self.readers);
        readers.retain(|reader| !reader.is_closed());
        if readers.len() >= READERS {
            return None;
        }
        let (reader, stream) = mpsc::channel(QUEUE);
        let mut recent = lock(&self.recent);
        let events =
            message("events", &Batch { recent: true, events: recent.events.make_contiguous(), missed: 0 });
        // There is room for both.
        for text in [events, first] {
            let _ = reader.try_send(text);
        }
        readers.push(reader);
        self.joined.notify_one();
        Some(stream)
    }

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
    pub(super) fn send(&self, text: &Arc<str>) {
        lock(&self.readers).retain(|reader| reader.try_send(Arc::clone(text)).is_ok());
    }

    pub(super) fn has_readers(&self) -> bool {
        lock(&self.readers).iter().any(|reader| !reader.is_closed())
    }
}

pub(super) fn message(name: &str, data: &impl Serialize) -> Arc<str> {
    match serde_json::to_string(data) {
        // JSON has no line feeds.
        Ok(json) => format!("event: {name}\ndata: {json}\n\n").into(),
        Err(error) => {
            tracing::error!(%error, "cannot write a message for the page");
            "".into()
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_takes_nothing_is_let_go() {
        let live = Live::default();
        let mut taken = live.join("first".into()).unwrap();
        let mut ignored = live.join("first".into()).unwrap();
        for _ in 0..QUEUE {
            live.send(&"more".into());
            let _ = taken.recv().await.unwrap();
        }
        assert_eq!(lock(&live.readers).len(), 1);
        let mut count = 0;
        while ignored.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, QUEUE);
        drop(taken);
        assert!(!live.has_readers());
    }

    #[test]
    fn pages_are_bounded_and_who_leaves_makes_room() {
        let live = Live::default();
        let mut open: Vec<_> = (0..READERS).map(|_| live.join("".into()).unwrap()).collect();
        assert!(live.join("".into()).is_none());
        open.pop();
        assert!(live.join("".into()).is_some());
    }
}

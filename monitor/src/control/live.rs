//! Streams of server-sent events to open pages.
//!
//! Invariant: a page that does not take what it is sent is let go; nobody waits for it. All pages are sent the same
//! text, which exists once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::connections::Client;
use crate::{
    events::{EventLine, Latest},
    os::lock,
    sink::page::happening,
};

const READERS: usize = 128;
const QUEUE: usize = 32;
const RECENT: usize = 100;
/// How many events are told at once; of more only the latest.
const AT_ONCE: usize = 256;

/// The open pages, and what a new one is told.
#[derive(Debug)]
pub(super) struct Live {
    events: Latest,
    open: Mutex<Open>,
    pub(super) joined: Notify,
}

#[derive(Debug, Default)]
struct Open {
    readers: Vec<(Client, mpsc::Sender<Arc<str>>)>,
    recent: VecDeque<Value>,
    told: u64,
}

impl Live {
    pub(super) fn new(events: Latest) -> Self {
        Self { events, open: Mutex::default(), joined: Notify::new() }
    }

    /// A stream that begins with the latest events and `first`; `None` if too many pages are open. The client with the most
    /// makes room for who has fewer.
    pub(super) fn join(&self, client: Client, first: Arc<str>) -> Option<mpsc::Receiver<Arc<str>>> {
        let mut open = self.lock();
        open.readers.retain(|(_, reader)| !reader.is_closed());
        if open.readers.len() >= READERS {
            let count = |of: Client| open.readers.iter().filter(|(one, _)| *one == of).count();
            let most = open.readers.iter().map(|(one, _)| *one).max_by_key(|one| count(*one));
            let most = most.filter(|most| count(*most) > count(client) + 1)?;
            let oldest = open.readers.iter().position(|(one, _)| *one == most)?;
            open.readers.remove(oldest);
        }
        open.tell(&self.events);
        let (reader, stream) = mpsc::channel(QUEUE);
        // There is room for both.
        for text in [batch(true, open.recent.make_contiguous(), 0), first] {
            let _ = reader.try_send(text);
        }
        open.readers.push((client, reader));
        self.joined.notify_one();
        Some(stream)
    }

    /// Tells all pages what has happened. While none is open, nothing is read.
    pub(super) fn tell(&self) {
        let mut open = self.lock();
        if !open.readers.is_empty() {
            open.tell(&self.events);
        }
    }

    /// Sends the same to all pages. One with no room left is let go; it connects again.
    pub(super) fn send(&self, text: &Arc<str>) {
        self.lock().send(text);
    }

    pub(super) fn has_readers(&self) -> bool {
        self.lock().readers.iter().any(|(_, reader)| !reader.is_closed())
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }
}

impl Open {
    fn tell(&mut self, events: &Latest) {
        let most = if self.readers.is_empty() { RECENT } else { AT_ONCE };
        let (first, lines) = events.after(self.told, most);
        let missed = first - self.told - 1;
        self.told = first + lines.len() as u64 - 1;
        let told = |(line, id): (Arc<str>, u64)| {
            let event = EventLine::read(&line)?;
            happening(id, event.wall, event.at, &event.notice)
        };
        let new: Vec<Value> = lines.into_iter().zip(first..).filter_map(told).collect();
        if !new.is_empty() || missed > 0 {
            self.send(&batch(false, &new, missed));
        }
        // No hole in what a new page is told.
        if missed > 0 {
            self.recent.clear();
        }
        self.recent.extend(new);
        let excess = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..excess);
    }

    fn send(&mut self, text: &Arc<str>) {
        self.readers.retain(|(_, reader)| reader.try_send(Arc::clone(text)).is_ok());
    }
}

/// Events; whether they are the latest, which replace those that the page has; and how many are missing before them.
fn batch(recent: bool, events: &[Value], missed: u64) -> Arc<str> {
    message("events", &json!({ "recent": recent, "events": events, "missed": missed }))
}

pub(super) fn message(name: &str, data: &Value) -> Arc<str> {
    // JSON has no line feeds.
    format!("event: {name}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events,
        sink::{Format as _, event_writer::Output as _, stream::Json, wall_clock::WallClock},
    };
    use orphand_core::model::{BootTime, Notice, Share};

    fn live() -> (Live, events::Keeper, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (keeper, latest, _) = events::open(dir.path(), WallClock::default());
        (Live::new(latest), keeper, dir)
    }

    #[test]
    fn events_that_come_too_fast_are_counted() {
        let (live, mut keeper, _dir) = live();
        let mut stream = live.join(one(), "".into()).unwrap();
        let (mut lines, mut json) = (String::new(), Json::new(WallClock::default()));
        let stopping = Notice::Stopping { agents: 0, servers: 0, orphans: 0 };
        (0..1000).for_each(|_| json.write(BootTime(1), &stopping, &mut lines));
        keeper.write(&lines).unwrap();
        live.tell();
        let told: Vec<_> = std::iter::from_fn(|| stream.try_recv().ok()).collect();
        let last = told.last().unwrap();
        assert!(last.contains("\"missed\":744") && last.contains("\"id\":1000,"), "{last}");
        // Who comes later is told the latest.
        let first = live.join(one(), "".into()).unwrap().try_recv().unwrap();
        assert!(first.contains("\"recent\":true") && first.contains("\"id\":901,"), "{first}");
        assert!(!first.contains("\"id\":900,"), "{first}");
    }

    #[tokio::test]
    async fn who_takes_nothing_is_let_go() {
        let (live, _keeper, _dir) = live();
        let mut taken = live.join(one(), "first".into()).unwrap();
        let mut ignored = live.join(one(), "first".into()).unwrap();
        for _ in 0..QUEUE {
            live.send(&"more".into());
            let _ = taken.recv().await.unwrap();
        }
        assert_eq!(live.lock().readers.len(), 1);
        let mut count = 0;
        while ignored.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, QUEUE);
        drop(taken);
        assert!(!live.has_readers());
    }

    fn one() -> Client {
        Client::User(Share::of(1000))
    }

    #[test]
    fn pages_are_bounded_and_who_leaves_makes_room() {
        let (live, _keeper, _dir) = live();
        let join = |user| live.join(Client::User(Share::of(user)), "".into());
        let mut open: Vec<_> = (0..READERS).map(|_| join(1000).unwrap()).collect();
        assert!(join(1000).is_none());
        open.pop();
        open.push(join(1000).unwrap());
        // Who has the most makes room for who has fewer, the oldest first.
        let late: Vec<_> = (0..READERS).map_while(|_| join(7)).collect();
        assert_eq!(late.len(), READERS / 2);
        assert!(open.iter().take(READERS / 2).all(mpsc::Receiver::is_closed));
        assert!(!open.iter().skip(READERS / 2).chain(&late).any(mpsc::Receiver::is_closed));
    }
}

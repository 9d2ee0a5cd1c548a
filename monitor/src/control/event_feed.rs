//! Readers of events at the control socket.
//!
//! Limits: so many readers of a user, so many of all, and a batch of lines for each. A reader that is slow waits in its
//! own task; what it has not read is in memory that all share, or in the files.

use std::{
    io,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{io::AsyncWriteExt as _, net::UnixStream, time::timeout};

use super::protocol::{self, Answer};
use crate::{
    events::{EventQuery, Latest, Reader, Step},
    os::{beside, clock, lock},
};

/// The most readers at a time. The other connections are left for questions.
const READERS: usize = 32;

const READERS_OF_USER: usize = 4;
/// Root has places of his own: all who used sudo(8) are root, and what forwards the events.
const READERS_OF_ROOT: usize = 16;

pub(super) const FULL: &str = "as many read events already as may (orphand events, orphand top), of this user or of all; end one of them";

/// How often it is looked whether the client is still there while nothing happens.
const LOOK: Duration = Duration::from_secs(5);

/// Each reader's user, and the right that it has.
type Readers = Vec<(u32, Weak<()>)>;

#[derive(Clone, Debug)]
pub(super) struct Feed {
    latest: Latest,
    readers: Arc<Mutex<Readers>>,
}

impl Feed {
    pub(super) fn new(latest: Latest) -> Self {
        Self { latest, readers: Arc::default() }
    }

    /// Admits one more reader of this user, unless there are too many: the right to read, until it is dropped.
    pub(super) fn admit(&self, uid: u32) -> Option<Arc<()>> {
        let mut readers = lock(&self.readers);
        readers.retain(|(_, right)| right.strong_count() > 0);
        let own = readers.iter().filter(|(user, _)| *user == uid).count();
        let others = readers.iter().filter(|(user, _)| *user != 0).count();
        let is_full =
            if uid == 0 { own >= READERS_OF_ROOT } else { others >= READERS || own >= READERS_OF_USER };
        if is_full {
            return None;
        }
        let right = Arc::new(());
        readers.push((uid, Arc::downgrade(&right)));
        Some(right)
    }

    /// Sends what `query` asks for, until all is sent or the client goes.
    pub(super) async fn serve(&self, stream: &mut UnixStream, query: &EventQuery) -> io::Result<()> {
        let latest = &self.latest;
        let mut news = latest.news();
        let mut reader = Reader::new(latest, query);
        stream.write_all(&protocol::write(&Answer::Events { life: latest.life() })?).await?;
        loop {
            let step = if reader.is_fast() {
                reader.step(clock::now())
            } else {
                // A disk may be slow.
                let work = move || (reader.step(clock::now()), reader);
                let (step, back) = beside(work).await?;
                reader = back;
                step
            };
            match step {
                Step::Lines(lines) => stream.write_all(lines.as_bytes()).await?,
                Step::Wait(_) if !query.follow => return stream.shutdown().await,
                Step::Wait(number) => {
                    while timeout(LOOK, news.wait_for(|next| *next > number)).await.is_err() {
                        if is_gone(stream)? {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}

/// Whether the client has closed its end. A client that only has nothing more to send is there.
fn is_gone(stream: &UnixStream) -> io::Result<bool> {
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(polled[0].revents().contains(PollFlags::HUP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::wall_clock::WallClock;

    #[test]
    fn readers_are_limited_by_user_and_in_all() {
        let dir = tempfile::tempdir().unwrap();
        let (_keeper, latest, opened) = crate::events::open(dir.path(), WallClock::default());
        opened.unwrap();
        let feed = Feed::new(latest);
        let mut admitted: Vec<_> = (0..READERS_OF_USER).map(|_| feed.admit(1).unwrap()).collect();
        assert!(feed.admit(1).is_none());
        admitted.pop();
        assert!(feed.admit(1).is_some());
        for uid in 2.. {
            let all: Vec<_> = (0..READERS_OF_USER).filter_map(|_| feed.admit(uid)).collect();
            admitted.extend(all);
            if admitted.len() == READERS {
                break;
            }
        }
        assert!(feed.admit(1000).is_none());
        let of_root: Vec<_> = (0..READERS_OF_ROOT).map(|_| feed.admit(0).unwrap()).collect();
        assert!(feed.admit(0).is_none());
        admitted.clear();
        assert!(feed.admit(1000).is_some() && feed.admit(0).is_none());
        drop(of_root);
    }
}

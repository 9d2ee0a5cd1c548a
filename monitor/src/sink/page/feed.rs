//! The way of events from the daemon's loop to the page.
//!
//! Invariant: the loop takes a lock that nobody else holds for more than a moment, formats an event, and wakes one task, however many
//! pages are open and whatever they do. If that task does not come, the queue fills, and events are counted as missed.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

use super::{Happening, Page};
use orphand_core::model::{BootTime, Notice};

/// How many events may wait.
const QUEUE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Heard>,
    grew: Notify,
    /// Whether somebody takes the events.
    is_heard: AtomicBool,
}

/// Events that were taken from the queue.
#[derive(Debug, Default)]
pub struct Heard {
    pub events: Vec<Happening>,
    /// How many were dropped after them.
    pub missed: u64,
}

/// The end of the queue where events are taken out.
#[derive(Debug)]
pub struct Feed(Page);

impl Page {
    /// Tells the page of an event. Never blocks.
    pub fn observe(&self, at: BootTime, notice: &Notice) {
        if !self.queue.is_heard.load(Ordering::Relaxed) {
            return;
        }
        let mut waiting = self.queue.lock();
        if waiting.events.len() >= QUEUE {
            waiting.missed += 1;
        } else if let Some(happening) = Happening::of(self.wall.timestamp(at), notice) {
            waiting.events.push(happening);
            drop(waiting);
            self.queue.grew.notify_one();
        }
    }

    /// From now on events are kept for who calls this.
    pub fn hear(&self) -> Feed {
        self.queue.is_heard.store(true, Ordering::Relaxed);
        Feed(self.clone())
    }
}

impl Feed {
    pub async fn grown(&self) {
        self.0.queue.grew.notified().await;
    }

    pub fn take(&self) -> Heard {
        std::mem::take(&mut *self.0.queue.lock())
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Inspections of servers, on threads beside the loop: one may take seconds (a server of thousands of processes), and neither the
//! ring nor the server of another user waits for it.
//!
//! Users are served in turn, each by one thread at a time: a user with many servers, or a large one, only delays his own. What has
//! to be looked at before it is gone has threads of its own, so that it does not wait for inspections. What nobody waits
//! for has threads of its own, too, so that inspections do not wait for it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::sync::mpsc;

use crate::probe::Probe;
use orphand_core::model::{About, Answer, FirstMessage, Stdio};

/// Threads that inspect: as many users less one may have a server that takes long before other users wait for them.
const THREADS: usize = 3;
const STACK: usize = 256 << 10;
/// The most looks that may wait for a thread, of one user and in total. The processes that they are about may have ended
/// since: only the number of living ones is bounded by the engine.
const WAITING_OF_USER: usize = 512;
const WAITING: usize = 8192;

/// A question to be answered.
#[derive(Debug)]
pub struct Request {
    /// Its number, which the answer repeats.
    pub token: u64,
    /// What is asked.
    pub about: Box<About>,
}

/// Whether a question may wait for inspections of the same user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// It waits for its turn among them.
    InTurn,
    /// What it is about is gone in milliseconds.
    AtOnce,
    /// There may be many of them, which read files, and nothing else waits for them.
    AtLeisure,
}

/// The questions that wait, the threads that answer them, and the answers.
#[derive(Debug)]
pub struct Inspections {
    in_turn: Crew,
    at_once: Crew,
    at_leisure: Crew,
    report: mpsc::UnboundedSender<(u64, Answer)>,
    /// The answers, in the order in which they were found.
    pub answers: mpsc::UnboundedReceiver<(u64, Answer)>,
}

/// Threads and what they have to do.
#[derive(Debug, Default)]
struct Crew {
    shared: Arc<Shared>,
    threads: usize,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    by_user: BTreeMap<u32, VecDeque<Request>>,
    /// The number of all of them.
    waiting: usize,
    /// Users for whom a thread is busy.
    busy: BTreeSet<u32>,
    /// The user whose turn it was last.
    served: u32,
    /// Wires that will be asked about, as far as is known now.
    others: Arc<Vec<Stdio>>,
    over: bool,
}

impl Inspections {
    /// No thread is started yet.
    pub fn new() -> Self {
        let (report, answers) = mpsc::unbounded_channel();
        let (in_turn, at_once, at_leisure) = <(Crew, Crew, Crew)>::default();
        Self { in_turn, at_once, at_leisure, report, answers }
    }

    /// Has a question answered, in this user's turn. Gives it back if no thread can be started. A look that finds too
    /// many others waiting finds nothing. `others` are wires that will be asked about next.
    pub fn ask(
        &mut self,
        probe: &Probe,
        haste: Haste,
        user: u32,
        request: Request,
        others: Vec<Stdio>,
    ) -> Result<(), Box<Request>> {
        let crew = match haste {
            Haste::InTurn => &mut self.in_turn,
            Haste::AtOnce => &mut self.at_once,
            Haste::AtLeisure => &mut self.at_leisure,
        };
        crew.take_on(probe, &self.report);
        if crew.threads == 0 {
            return Err(Box::new(request));
        }
        let mut queue = crew.shared.queue();
        if haste != Haste::InTurn && queue.is_full_for(user) {
            // The receiver is ours.
            let _ =
                self.report.send((request.token, Answer::FirstMessage { message: FirstMessage::Nothing }));
            return Ok(());
        }
        queue.by_user.entry(user).or_default().push_back(request);
        queue.waiting += 1;
        queue.others = Arc::new(others);
        drop(queue);
        crew.shared.news.notify_one();
        Ok(())
    }
}

impl Crew {
    /// Starts a further thread, if there are not enough.
    fn take_on(&mut self, probe: &Probe, report: &mpsc::UnboundedSender<(u64, Answer)>) {
        if self.threads >= THREADS {
            return;
        }
        let (shared, probe, report) = (Arc::clone(&self.shared), probe.clone(), report.clone());
        let work = move || {
            while let Some((user, Request { token, about }, others)) = shared.next() {
                let answer = probe.answer(&about, &|| others.to_vec());
                shared.done(user);
                if report.send((token, answer)).is_err() {
                    return;
                }
            }
        };
        let builder = thread::Builder::new().name("orphand-turn".to_owned()).stack_size(STACK);
        self.threads += usize::from(builder.spawn(work).is_ok());
    }
}

impl Default for Inspections {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Inspections {
    fn drop(&mut self) {
        for crew in [&self.in_turn, &self.at_once, &self.at_leisure] {
            crew.shared.queue().over = true;
            crew.shared.news.notify_all();
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is locked.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a question. Nothing, when the daemon stops.
    fn next(&self) -> Option<(u32, Request, Arc<Vec<Stdio>>)> {
        let mut queue = self.queue();
        loop {
            if queue.over {
                return None;
            }
            if let Some((user, request)) = queue.take() {
                return Some((user, request, Arc::clone(&queue.others)));
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, user: u32) {
        self.queue().busy.remove(&user);
        self.news.notify_one();
    }
}

impl Queue {
    fn is_full_for(&self, user: u32) -> bool {
        self.waiting >= WAITING || self.by_user.get(&user).is_some_and(|own| own.len() >= WAITING_OF_USER)
    }

    /// The oldest question of the next user for whom no thread is busy.
    fn take(&mut self) -> Option<(u32, Request)> {
        let after = (Bound::Excluded(self.served), Bound::Unbounded);
        let mut in_turn = self.by_user.range(after).chain(self.by_user.range(..=self.served));
        let user = in_turn.find(|(user, _)| !self.busy.contains(user)).map(|(user, _)| *user)?;
        let own = self.by_user.get_mut(&user)?;
        let request = own.pop_front();
        if own.is_empty() {
            self.by_user.remove(&user);
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.busy.insert(user);
        self.served = user;
        Some((user, request?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(token: u64) -> Request {
        Request { token, about: Box::new(About::Memory(Vec::new())) }
    }

    fn queue(requests: &[(u32, u64)]) -> Queue {
        let mut queue = Queue::default();
        for (user, token) in requests {
            queue.by_user.entry(*user).or_default().push_back(request(*token));
            queue.waiting += 1;
        }
        queue
    }

    fn taken(queue: &mut Queue) -> Option<(u32, u64)> {
        queue.take().map(|(user, request)| (user, request.token))
    }

    #[test]
    fn one_user_has_one_thread_at_a_time() {
        let mut queue = queue(&[(7, 1), (7, 2), (7, 3), (8, 4)]);
        assert_eq!(taken(&mut queue), Some((7, 1)));
        assert_eq!(taken(&mut queue), Some((8, 4)));
        assert_eq!(taken(&mut queue), None);
        queue.busy.remove(&7);
        assert_eq!(taken(&mut queue), Some((7, 2)));
    }

    /// However many looks of a user hang, and whatever else waits: they have one of the threads, and the others are
    /// there for the other users.
    #[test]
    fn a_user_whose_looks_hang_has_one_thread() {
        let mut all: Vec<(u32, u64)> = (0..1000).map(|token| (7, token)).collect();
        all.extend((1000..1100).map(|token| (8 + u32::try_from(token % 5).unwrap(), token)));
        let mut queue = queue(&all);
        let mut others = 0;
        while let Some((user, _)) = taken(&mut queue) {
            if user != 7 {
                others += 1;
                queue.busy.remove(&user);
            }
        }
        assert_eq!((others, queue.by_user.len(), queue.by_user[&7].len()), (100, 1, 999));
    }

    #[test]
    fn looks_that_wait_are_bounded() {
        let probe = Probe::new().unwrap();
        let mut inspections = Inspections::new();
        let busy = (7..1000).collect();
        inspections.at_leisure.shared.queue().busy = busy;
        let mut ask = |user, token| {
            inspections.ask(&probe, Haste::AtLeisure, user, request(token), Vec::new()).unwrap();
            inspections.answers.try_recv().ok()
        };
        let nothing = |token| Some((token, Answer::FirstMessage { message: FirstMessage::Nothing }));
        for token in 0..2000 {
            assert_eq!(ask(7, token), nothing(token).filter(|_| token >= 512));
        }
        // Another user has a share of his own, until there are too many users.
        assert_eq!(ask(8, 0), None);
        let asked = (9..1000).flat_map(|user| (0..100).map(move |token| (user, token)));
        assert_eq!(asked.filter(|(user, token)| ask(*user, *token).is_none()).count(), 8192 - 513);
    }

    #[test]
    fn inspections_do_not_wait_for_what_nobody_waits_for() {
        let probe = Probe::new().unwrap();
        let mut inspections = Inspections::new();
        // Its thread is busy, and stays so.
        inspections.at_leisure.shared.queue().busy.insert(7);
        for token in 0..128 {
            inspections.ask(&probe, Haste::AtLeisure, 7, request(token), Vec::new()).unwrap();
        }
        for (haste, token) in [(Haste::InTurn, 200), (Haste::AtOnce, 201)] {
            inspections.ask(&probe, haste, 7, request(token), Vec::new()).unwrap();
            assert_eq!(inspections.answers.blocking_recv().unwrap().0, token);
        }
        assert_eq!(inspections.at_leisure.shared.queue().by_user[&7].len(), 128);
    }

    #[test]
    fn users_have_their_turns() {
        let mut queue = queue(&[(7, 1), (7, 2), (8, 3), (8, 4), (9, 5)]);
        let mut order = Vec::new();
        while let Some((user, token)) = taken(&mut queue) {
            queue.busy.remove(&user);
            order.push(token);
        }
        assert_eq!(order, [1, 3, 5, 2, 4]);
    }

    #[test]
    fn every_question_is_answered_once() {
        let probe = Probe::new().unwrap();
        let mut inspections = Inspections::new();
        for token in 0..50 {
            let haste = [Haste::InTurn, Haste::AtOnce, Haste::AtLeisure][usize::try_from(token % 3).unwrap()];
            let user = u32::try_from(token % 5).unwrap();
            inspections.ask(&probe, haste, user, request(token), Vec::new()).unwrap();
        }
        let mut told: Vec<u64> = (0..50).map(|_| inspections.answers.blocking_recv().unwrap().0).collect();
        told.sort_unstable();
        assert_eq!(told, (0..50).collect::<Vec<_>>());
    }
}

//! Inspections of servers, on threads beside the loop: one may take seconds, and neither the ring nor the server of another user
//! waits for it.
//!
//! Users are served in turn, each by one thread at a time. What has to be looked at before it is gone has threads of its own, and so
//! has what nobody waits for. What the work costs is charged to the user ([`crate::os::budgets`]).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use crate::{
    host::in_turn_of,
    os::{
        budgets::{Budget, Budgets},
        lock,
        processor_time::Meter,
    },
    probe::{Candidate, Probe},
};
use orphand_core::model::{About, Answer, FirstMessage, Haste, Share};

/// Threads that inspect: as many users less one may have a server that takes long before other users wait for them.
const THREADS: usize = 3;
/// The last free thread is for users for whom less was spent of late: those whose servers take long do not have all of them.
const LITTLE: Duration = Duration::from_secs(1);
const STACK: usize = 256 << 10;
/// The most looks that may wait, of one user and in total: what they are about may have ended, so the engine does not bound them.
const WAITING_OF_USER: usize = 512;
const WAITING: usize = 8192;

/// How many questions about settings of one user one helper answers.
const SETTINGS_TOGETHER: usize = 32;
/// How many servers of one user are inspected together: by one pass over all descriptors of the host, which may take long. More would
/// be too old when the last of them is judged.
const SERVERS_TOGETHER: usize = 32;
const fn seconds(allowance: u64, part: u32) -> Budget {
    Budget { allowance: Duration::from_secs(allowance), part }
}

/// What may be spent on one user, and on all together, for each [`Haste`].
const BUDGETS: [(Budget, Option<Budget>); 4] = [
    // Inspections of thousands of servers whose agents ended at once come in time, those of servers that stay unproven do
    // not take a processor. No total: the users have their turns.
    (seconds(30, 4), None),
    // First messages: a look costs some ten microseconds, less than to start what is looked at.
    (seconds(2, 20), Some(seconds(10, 5))),
    // Settings files: milliseconds for a process that costs its user one.
    (seconds(1, 100), Some(seconds(5, 20))),
    // What persons recognise servers by: files of settings again. It takes nothing from what is needed.
    (seconds(1, 100), Some(seconds(2, 50))),
];

#[derive(Debug)]
pub struct Request {
    pub token: u64,
    pub about: Box<About>,
}

#[derive(Debug)]
pub struct Inspections {
    /// One for each [`Haste`].
    crews: [Crew; 4],
    report: mpsc::UnboundedSender<(u64, Answer)>,
    /// The answers, in the order in which they were found.
    pub answers: mpsc::UnboundedReceiver<(u64, Answer)>,
}

#[derive(Debug)]
struct Crew {
    shared: Arc<Shared>,
    threads: usize,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Debug)]
struct Queue {
    by_user: BTreeMap<Share, VecDeque<Request>>,
    waiting: usize,
    busy: BTreeSet<Share>,
    served: Share,
    budgets: Budgets,
    over: bool,
}

impl Default for Inspections {
    fn default() -> Self {
        let (report, answers) = mpsc::unbounded_channel();
        Self { crews: BUDGETS.map(|(user, all)| Crew::new(Budgets::new(user, all))), report, answers }
    }
}

impl Inspections {
    /// Has a question answered, in this user's turn. Gives it back without a thread. A look finds nothing if too many others wait.
    pub fn ask(
        &mut self,
        probe: &Probe,
        haste: Haste,
        user: Share,
        request: Request,
    ) -> Result<(), Box<Request>> {
        let Some(crew) = self.crews.get_mut(haste as usize) else { return Err(Box::new(request)) };
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
        drop(queue);
        crew.shared.news.notify_one();
        Ok(())
    }
}

impl Crew {
    fn new(budgets: Budgets) -> Self {
        let shared = Shared { queue: Mutex::new(Queue::new(budgets)), news: Condvar::new() };
        Self { shared: Arc::new(shared), threads: 0 }
    }

    fn take_on(&mut self, probe: &Probe, report: &mpsc::UnboundedSender<(u64, Answer)>) {
        if self.threads >= THREADS {
            return;
        }
        let (shared, probe, report) = (Arc::clone(&self.shared), probe.clone(), report.clone());
        let work = move || {
            while let Some((user, requests)) = shared.next() {
                let meter = Meter::begin();
                let answers = in_turn_of(user, || answers(&probe, &requests));
                shared.done(user, meter.spent());
                let told = requests.iter().map(|request| request.token).zip(answers);
                for one in told {
                    if report.send(one).is_err() {
                        return;
                    }
                }
            }
        };
        let builder = thread::Builder::new().name("orphand-turn".to_owned()).stack_size(STACK);
        self.threads += usize::from(builder.spawn(work).is_ok());
    }
}

/// The answers to these questions, which are answered together if they are of a kind that can be.
fn answers(probe: &Probe, requests: &[Request]) -> Vec<Answer> {
    let (mut servers, mut candidates) = (Vec::new(), Vec::new());
    for request in requests {
        match &*request.about {
            About::Server(subject) => servers.push(subject.clone()),
            About::Declared { process, lines } => {
                candidates.push(Candidate { process: *process, earlier: lines.clone() });
            }
            _ => return requests.iter().map(|request| probe.answer(&request.about)).collect(),
        }
    }
    if candidates.is_empty() {
        return probe.answer_together(servers);
    }
    let said = probe.declared(&candidates).into_iter();
    said.map(|message| Answer::FirstMessage { message }).collect()
}

impl Request {
    /// How many questions of its kind may be answered together.
    fn together(&self) -> usize {
        match &*self.about {
            About::Declared { .. } => SETTINGS_TOGETHER,
            // Others do not wait for an engine of containers.
            About::Server(subject) if subject.container.is_none() => SERVERS_TOGETHER,
            _ => 1,
        }
    }
}

impl Drop for Inspections {
    fn drop(&mut self) {
        for crew in &self.crews {
            crew.shared.queue().over = true;
            crew.shared.news.notify_all();
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Waits for a question, or for several about settings. Nothing, when the daemon stops.
    fn next(&self) -> Option<(Share, Vec<Request>)> {
        let mut queue = self.queue();
        loop {
            if queue.over {
                return None;
            }
            let now = Instant::now();
            if let Some(taken) = queue.take(now) {
                return Some(taken);
            }
            // Those who have spent too much wait for time to pass, the others for a question.
            queue = match queue.waits(now) {
                Some(time) => {
                    let woken = self.news.wait_timeout(queue, time);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.news.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn done(&self, user: Share, cost: Duration) {
        let mut queue = self.queue();
        queue.busy.remove(&user);
        queue.budgets.charge(user, Instant::now(), cost);
        drop(queue);
        self.news.notify_one();
    }
}

impl Queue {
    fn new(budgets: Budgets) -> Self {
        let (by_user, busy) = (BTreeMap::new(), BTreeSet::new());
        Self { by_user, waiting: 0, busy, served: Share::default(), budgets, over: false }
    }

    fn is_full_for(&self, user: Share) -> bool {
        self.waiting >= WAITING || self.by_user.get(&user).is_some_and(|own| own.len() >= WAITING_OF_USER)
    }

    /// The oldest question of the next user for whom no thread is busy and who has not spent too much, with those after it
    /// that may be answered together with it.
    fn take(&mut self, now: Instant) -> Option<(Share, Vec<Request>)> {
        let after = (Bound::Excluded(self.served), Bound::Unbounded);
        let mut in_turn =
            self.by_user.range(after).chain(self.by_user.range(..=self.served)).map(|(user, _)| *user);
        let user = in_turn.find(|user| self.waits_of(*user, now).is_some_and(|time| time.is_zero()))?;
        let own = self.by_user.get_mut(&user)?;
        let together = own.front().map_or(0, Request::together);
        let same = own.iter().take(together).take_while(|request| request.together() == together);
        let count = same.count();
        let requests: Vec<Request> = own.drain(..count).collect();
        if own.is_empty() {
            self.by_user.remove(&user);
        }
        self.waiting = self.waiting.saturating_sub(requests.len());
        self.busy.insert(user);
        self.served = user;
        Some((user, requests))
    }

    /// How long it takes until a user may be served again who has spent too much; nothing where that depends on a thread.
    fn waits(&self, now: Instant) -> Option<Duration> {
        self.by_user.keys().filter_map(|user| self.waits_of(*user, now)).min()
    }

    /// The same for this user: one thread at a time is busy for him, and the last one that is free only if he has spent little.
    fn waits_of(&self, user: Share, now: Instant) -> Option<Duration> {
        let is_last = self.busy.len() + 1 >= THREADS;
        let has_to_wait = self.busy.contains(&user) || (is_last && self.budgets.spent(user, now) > LITTLE);
        (!has_to_wait).then(|| self.budgets.waits(user, now))
    }
}

#[cfg(test)]
mod tests;

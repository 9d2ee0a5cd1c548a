//! What the engine does at a time: the deadlines of all cases, and everything else that waits.
//!
//! Invariant: cases are inspected user by user in turn, so a user with thousands of servers delays the server of another user
//! by one inspection. A task that nobody needs any more does nothing when its time comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::Duration,
};

use super::{Engine, cases::CaseOf};
use crate::{
    case::Event,
    lineage::ServerKey,
    model::{BootTime, ProcessId, Share},
    world::{Look, Server},
};

/// How many inspections of one user's servers may be under way at a time: twice as many as are made together, so that there
/// is always work. A question about hundreds of servers is large.
const UNDER_WAY: usize = 256;
/// How many tasks, and how many cases, are due in one pass. Whatever else is due waits for the next pass: an inspection takes
/// up to milliseconds, and the shell drains the ring in between.
const TASKS_AT_ONCE: usize = 64;
const CASES_AT_ONCE: usize = 4;

/// What is done when its time comes, in this order if that is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    Repair,
    /// Agents of this user were not reported.
    Folded(u32),
    /// A process ended that may have been the reason why an orphan stays, a moment after such an inspection.
    Reinspect,
    /// The client of a container has ended.
    Containers,
    /// The wires of servers under living owners are asked about.
    Wires,
    /// It is asked what idle duplicates have done.
    Idle,
    /// The tools of a server with a new case are looked at.
    Tools(ServerKey),
    Look(ServerKey, Look),
    FirstMessage(ProcessId),
    /// Processes wait until there is room to ask about them.
    Queue,
    Processor,
    /// The value of an alert changes although nothing happens.
    Alerts,
    Duplicates,
    /// The next step of ending a leftover.
    LeftEnding(ProcessId),
    /// What ended agents left is looked for.
    Leftovers,
    Case(CaseOf),
}

#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Each task, with the user whose turn it uses if it is a case.
    at: BTreeMap<Task, (Option<Share>, BootTime)>,
    by_user: BTreeMap<Option<Share>, BTreeSet<(BootTime, Task)>>,
    /// The servers of which an inspection was asked for and is not answered yet, with the users in whose turn it is made.
    pub(super) under_way: BTreeMap<ServerKey, Share>,
    served: Option<Share>,
}

impl Agenda {
    pub(super) fn at(&self, task: Task) -> Option<BootTime> {
        self.at.get(&task).map(|(_, at)| *at)
    }

    /// Sets when this is done; `None`: not at all.
    pub(super) fn set(&mut self, task: Task, at: Option<BootTime>) {
        self.set_of(None, task, at);
    }

    /// Sets when this is done, unless that is set; `None`: not at all.
    pub(super) fn keep(&mut self, task: Task, at: Option<BootTime>) {
        if at.is_none() || self.at(task).is_none() {
            self.set(task, at);
        }
    }

    /// Has this done no later than at this time.
    pub(super) fn hasten(&mut self, task: Task, at: BootTime) {
        self.set(task, Some(self.at(task).map_or(at, |before| before.min(at))));
    }

    fn set_of(&mut self, user: Option<Share>, task: Task, at: Option<BootTime>) {
        if let Some((user, at)) = self.at.remove(&task)
            && let Some(own) = self.by_user.get_mut(&user)
        {
            own.remove(&(at, task));
            if own.is_empty() {
                self.by_user.remove(&user);
            }
        }
        if let Some(at) = at {
            self.at.insert(task, (user, at));
            self.by_user.entry(user).or_default().insert((at, task));
        }
    }

    /// Has everything done this much later.
    pub(super) fn put_off(&mut self, by: Duration) {
        self.at.values_mut().for_each(|(_, at)| *at = *at + by);
        for own in self.by_user.values_mut() {
            *own = own.iter().map(|(at, task)| (*at + by, *task)).collect();
        }
    }

    fn has_room(&self, user: Option<Share>) -> bool {
        let of_user = || self.under_way.values().filter(|asked| Some(**asked) == user);
        self.under_way.len() < UNDER_WAY || of_user().count() < UNDER_WAY
    }

    /// When the next task is due, of those users that have not too many inspections under way.
    pub(super) fn next(&self) -> Option<BootTime> {
        let with_room = self.by_user.iter().filter(|(user, _)| self.has_room(**user));
        with_room.filter_map(|(_, own)| own.first()).map(|(at, _)| *at).min()
    }

    /// A task that is due, and no case. It is not any more then.
    fn due(&mut self, now: BootTime) -> Option<Task> {
        let (at, task) = *self.by_user.get(&None)?.first()?;
        (at <= now).then(|| self.set(task, None))?;
        Some(task)
    }

    /// Likewise a case: that of the next user who has one that is due.
    fn due_case(&mut self, now: BootTime) -> Option<CaseOf> {
        let after = self.by_user.range((Bound::Excluded(self.served), Bound::Unbounded));
        let in_turn = after.chain(self.by_user.range(..=self.served));
        let mut first = in_turn.filter_map(|(user, own)| Some((*user, *own.first()?)));
        let is_due = |(user, (at, _)): &(Option<Share>, (BootTime, Task))| *at <= now && self.has_room(*user);
        let (user, of) = first.find_map(|one| match one {
            (user, (_, Task::Case(of))) if is_due(&one) => Some((user, of)),
            _ => None,
        })?;
        self.served = user;
        self.set(Task::Case(of), None);
        Some(of)
    }
}

impl Engine {
    /// When the case of a server or an agent goes on; `None`: when something happens.
    pub(super) fn deadline(&self, of: CaseOf) -> Option<BootTime> {
        self.agenda.at(Task::Case(of))
    }

    pub(super) fn set_deadline(&mut self, of: CaseOf, at: Option<BootTime>) {
        let user = match of {
            CaseOf::Server(key) => self.world.server(key).map(Server::share),
            CaseOf::Agent(key) => {
                self.world.agent(key).filter(|agent| agent.is_alive()).map(|agent| Share::of(agent.uid))
            }
        };
        self.agenda.set_of(user, Task::Case(of), at.filter(|_| user.is_some()));
    }

    /// The time of [`Engine::poll_timeout`] has come: does what is due.
    pub(super) fn handle_timeout(&mut self, now: BootTime) {
        for _ in 0..TASKS_AT_ONCE {
            let Some(task) = self.agenda.due(now) else { break };
            match task {
                Task::Repair => self.ask_for_repair(now),
                Task::Folded(user) => self.report_coalesced(now, user),
                Task::Reinspect => self.other_ended(now),
                Task::Containers => self.look_into_containers(now),
                Task::Wires => self.watch_wires(now),
                Task::Idle => self.look_at_duplicates(now),
                Task::Tools(key) => self.look(key, Look::Later),
                Task::Look(key, look) => self.look(key, look),
                Task::FirstMessage(id) => self.look_for_first_message(now, id),
                Task::Queue => self.take_from_queue(now),
                Task::Processor => self.read_processor(now),
                Task::Alerts => self.alarms.dirty = true,
                Task::Duplicates => self.look_for_duplicates(now),
                Task::LeftEnding(head) => self.go_on_ending(now, head),
                Task::Leftovers => self.look_for_leftovers(now),
                Task::Case(_) => {}
            }
        }
        for _ in 0..CASES_AT_ONCE {
            let Some(of) = self.agenda.due_case(now) else { break };
            self.advance(now, of, Event::DeadlineReached, None);
        }
    }
}

/// At most `most` of these servers, by their users: of each as many as of any other, in order, after the last one of his.
pub(super) fn in_turn(
    last: &BTreeMap<Share, ServerKey>,
    servers: impl Iterator<Item = (ServerKey, Share)>,
    most: usize,
) -> BTreeMap<Share, Vec<ServerKey>> {
    let mut by_user = BTreeMap::<Share, Vec<ServerKey>>::new();
    for (key, user) in servers {
        by_user.entry(user).or_default().push(key);
    }
    let each = most.div_ceil(by_user.len().max(1));
    for (user, keys) in &mut by_user {
        if keys.len() > each {
            let after = keys.iter().position(|key| last.get(user).is_none_or(|last| key > last));
            keys.rotate_left(after.unwrap_or_default());
            keys.truncate(each);
        }
    }
    by_user
}

/// The last one of each user among these.
pub(super) fn last_of(chosen: &BTreeMap<Share, Vec<ServerKey>>) -> BTreeMap<Share, ServerKey> {
    chosen.iter().filter_map(|(user, keys)| Some((*user, *keys.last()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn who_has_thousands_delays_only_his_own() {
        let key = |number| ServerKey(NonZeroU32::new(number).unwrap());
        let all =
            || (1..=2500).map(|number| (key(number), Share::of(if number > 2497 { 1001 } else { 1000 })));
        let mut last = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for _ in 0..5 {
            let chosen = in_turn(&last, all(), 1024);
            last = last_of(&chosen);
            let chosen: Vec<ServerKey> = chosen.into_values().flatten().collect();
            assert!(chosen.ends_with(&[key(2498), key(2499), key(2500)]) && chosen.len() == 515);
            seen.extend(chosen);
        }
        assert_eq!(seen.len(), 2500, "each of them had its turn");
    }
}

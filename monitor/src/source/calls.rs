//! Who called a followed process over TCP lately, and which connections a followed process began: what the kernel side has seen.
//!
//! Invariant: "nobody" is said only of a port that was watched for the whole time that counts, or since its server was born.

use std::{
    collections::{BTreeSet, HashMap as Map},
    fmt,
    sync::{Mutex, OnceLock},
};

use aya::{
    Ebpf,
    maps::{Array, HashMap, MapData},
};
use monitor_common::{CallRecord, Caller as By, LATELY};

use super::{decode::id, kernel_error::KernelError, kernel_side::Caller, maps};
use crate::os::{clock, lock};
use orphand_core::model::{BootTime, ProcessId};

/// A connection of a process that began it, by the ports of its side and of the other.
pub type Begun = (ProcessId, u16, u16);

/// What the next daemon has to know of a port.
pub type KeptCalls = (u16, CallRecord);

/// Enters what an earlier daemon of this boot has kept, before anything is written down.
pub(super) fn enter(programs: &mut Ebpf, kept: &[KeptCalls]) -> Result<(), KernelError> {
    let called = programs.map_mut("CALLED").ok_or_else(|| KernelError::no_object("CALLED"))?;
    let mut called: HashMap<_, u32, CallRecord> = HashMap::try_from(called)?;
    for (port, record) in kept {
        called.insert(u32::from(*port), record, 0)?;
    }
    Ok(())
}

/// Reads the maps `CALLED`, `CALLERS` and `CALL_LOST`. It works as long as anybody has them.
pub struct Calls {
    called: HashMap<MapData, u32, CallRecord>,
    callers: HashMap<MapData, u64, By>,
    lost: Array<MapData, u64>,
    /// Since when calls are written down.
    since: BootTime,
    /// The same time of the clock that calls are written down with, which stands still while the host is asleep.
    awake_since: u64,
    host_network: u32,
    /// Who called a server that was born before that is not known.
    unknown_before: OnceLock<BootTime>,
    halts: Mutex<Halts>,
}

// One of the maps has no Debug.
impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("since", &self.since).finish_non_exhaustive()
    }
}

/// Those who were held (stopped, frozen) at a look at their calls: as long as somebody is, nobody can call him, and what was
/// lately stays so.
#[derive(Debug, Default)]
struct Halts {
    of: Map<ProcessId, Halt>,
    tidied: u64,
}

#[derive(Clone, Copy, Debug)]
struct Halt {
    /// Calls after this time count.
    after: u64,
    /// The last look that found him held, or the first one after that.
    until: u64,
    is_held: bool,
}

impl Halts {
    /// The calls of `holder` after this time are of lately.
    fn lately(&mut self, holder: ProcessId, is_held: bool, now: u64) -> u64 {
        if now.saturating_sub(self.tidied) > LATELY {
            self.of.retain(|_, halt| now.saturating_sub(halt.until) < 2 * LATELY);
            self.tidied = now;
        }
        let halt = self.of.remove(&holder);
        let halt = halt.filter(|halt| halt.is_held || now.saturating_sub(halt.until) < LATELY);
        let after = halt.map_or(now.saturating_sub(LATELY), |halt| halt.after);
        let until = if is_held || halt.is_some_and(|halt| halt.is_held) {
            Some(now)
        } else {
            halt.map(|halt| halt.until)
        };
        self.of.extend(until.map(|until| (holder, Halt { after, until, is_held })));
        after
    }
}

impl Calls {
    pub(super) fn new(programs: &mut Ebpf, host_network: u32) -> Result<Self, KernelError> {
        Ok(Self {
            called: maps::hash_map(programs, "CALLED")?,
            callers: maps::hash_map(programs, "CALLERS")?,
            lost: Array::try_from(maps::take(programs, "CALL_LOST")?)?,
            since: clock::now(),
            awake_since: clock::awake(),
            host_network,
            unknown_before: OnceLock::new(),
            halts: Mutex::default(),
        })
    }

    /// Who called before that is not known, as nobody has kept it.
    pub fn forget_before(&self, at: BootTime) {
        let _ = self.unknown_before.set(at);
    }

    /// Who called this port in this network, where a server listens whose oldest process this is: a part of it that has the port may
    /// be started anew. `is_held`: who has the port is stopped or frozen now, or not.
    pub fn of(
        &self,
        network: u32,
        port: u16,
        oldest: ProcessId,
        is_held: bool,
    ) -> Result<Vec<Caller>, String> {
        let record =
            maps::value(&self.called, u32::from(port)).map_err(|e| e.to_string())?.unwrap_or_default();
        let lost = self.lost.get(&0, 0).map_err(|e| e.to_string())?;
        let is_older_than = |at: &BootTime| oldest.start <= at.ticks();
        // Since its birth the host has been awake for that long at most.
        let age = clock::now().since(oldest.born());
        let now = clock::awake();
        let born = now.saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        let lately = lock(&self.halts).lately(oldest, is_held, now);
        let unseen = if self.unknown_before.get().is_some_and(is_older_than) {
            FOR_GOOD
        } else if is_older_than(&self.since) {
            lost.max(self.awake_since)
        } else {
            lost
        };
        Ok(callers(&record, network, network == self.host_network, [unseen, born, lately]))
    }

    /// What the next daemon has to know.
    pub fn kept(&self) -> Vec<KeptCalls> {
        let records = self.called.iter().filter_map(Result::ok);
        let has_callers =
            |record: &CallRecord| record.without_place != [0; 2] || record.by.iter().any(|call| call.at != 0);
        let kept = records.filter(|(_, record)| has_callers(record));
        kept.filter_map(|(port, record)| Some((port.try_into().ok()?, record))).collect()
    }

    /// The open connections that followed processes have begun since the hook was attached; of very many not all. Another
    /// connection may have the place of one that is closed while this is read: it is left out.
    pub fn begun(&self) -> BTreeSet<Begun> {
        let callers = self.callers.iter().filter_map(Result::ok);
        callers.map(|(_, by)| (id(by.tgid, by.start), by.near, by.far)).collect()
    }
}

/// Who called before is not known: he may call again, however seldom.
const FOR_GOOD: u64 = u64::MAX;

/// What such a record says of this network: in another one the same port is another's. An earlier call than the birth of the server
/// that has the port (`born`) was one of another that had it. What was after `lately` counts, whoever called. The last time at which
/// a call was not written down is `unseen`.
fn callers(
    record: &CallRecord,
    network: u32,
    is_host: bool,
    [unseen, born, lately]: [u64; 3],
) -> Vec<Caller> {
    let in_network = |[here, elsewhere]: [u64; 2]| if is_host { here } else { elsewhere };
    let (by_anybody, without_place) = (in_network(record.by_anybody), in_network(record.without_place));
    let is_lately = |at: u64| at > lately;
    let here = record.by.iter().filter(|call| call.caller.network == network);
    let known = here.filter_map(|call| {
        let By { tgid, start, parents: [first, second, third], head, agent, far, .. } = call.caller;
        let above = [first, second, third, head, agent];
        let lately = is_lately(call.at);
        let is_of_this = call.at != 0 && call.at >= born;
        if far == 0 {
            return is_of_this.then(|| Caller::Seeker(id(tgid, start)));
        }
        (lately || is_of_this).then(|| Caller::Process { by: id(tgid, start), above, lately })
    });
    let anybody = is_lately(by_anybody).then_some(Caller::Anybody);
    // Whoever found no place may be any of those that live.
    let may_call_again = without_place != 0 && without_place >= born;
    let was_unseen = unseen >= born && is_lately(unseen);
    let unknown = (may_call_again || was_unseen).then_some(Caller::Unknown);
    anybody.into_iter().chain(unknown).chain(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use monitor_common::Call;

    const MINUTE: u64 = 60 * 1_000_000_000;

    /// Ten minutes before this one.
    const fn before(minute: u64) -> u64 {
        (minute * MINUTE).saturating_sub(LATELY)
    }

    #[test]
    fn for_who_is_held_no_time_passes() {
        let (held, other) = (ProcessId::new(7, 1), ProcessId::new(8, 1));
        let mut halts = Halts::default();
        let mut counts =
            |holder, is_held, minute: u64| halts.lately(holder, is_held, minute * MINUTE) / MINUTE;
        assert_eq!(counts(held, false, 50), 40);
        assert_eq!([51, 59, 72].map(|minute| counts(held, true, minute)), [41; 3]);
        // The first look that finds it going on comes late. From then on it has ten minutes.
        assert_eq!([90, 99, 100].map(|minute| counts(held, false, minute)), [41, 41, 90]);
        assert_eq!([51, 101].map(|minute| counts(other, false, minute)), [41, 91], "nobody held that one");
        let seldom = [200, 230].map(|minute| counts(held, true, minute));
        assert_eq!(seldom, [190, 220], "two looks that are so far apart are no halt");
    }

    #[test]
    fn a_call_counts_for_ten_minutes_and_its_caller_longer() {
        let call = |tgid, at| Call {
            at,
            caller: By {
                start: 50 * 10_000_000,
                tgid,
                parents: [9, 8, 0],
                head: 6,
                network: 4,
                far: 80,
                ..By::default()
            },
        };
        let by = [call(7, 25 * MINUTE), call(8, 31 * MINUTE), Call::default(), Call::default()];
        let record = CallRecord { by_anybody: [20 * MINUTE, 0], without_place: [0; 2], by };
        let says = |now: u64| callers(&record, 4, true, [0, 25 * MINUTE, before(now)]);
        let caller =
            |pid, lately| Caller::Process { by: ProcessId::new(pid, 50), above: [9, 8, 0, 6, 0], lately };
        let (process, longer_ago) = (|pid| caller(pid, true), |pid| caller(pid, false));
        assert_eq!(says(29), [Caller::Anybody, process(7), process(8)]);
        assert_eq!([30, 34].map(says), [(); 2].map(|()| vec![process(7), process(8)]));
        assert_eq!(says(35), [longer_ago(7), process(8)], "both, whoever was the last");
        assert_eq!(says(41), [longer_ago(7), longer_ago(8)]);
        let later = callers(&record, 4, true, [0, 25 * MINUTE + 1, before(45)]);
        assert_eq!(later, [longer_ago(8)], "the other one called another that had the port");
        assert_eq!(callers(&CallRecord::default(), 4, true, [0, 0, before(2)]), []);
        let seeker = By { start: 50 * 10_000_000, tgid: 7, network: 4, ..By::default() };
        let by = [Call { at: 26 * MINUTE, caller: seeker }; 4];
        let seeks = |born| {
            callers(&CallRecord { by, ..CallRecord::default() }, 4, true, [0, born * MINUTE, before(60)])
        };
        assert_eq!(seeks(25), [Caller::Seeker(ProcessId::new(7, 50)); 4], "as long as it lives");
        assert_eq!(seeks(27), [], "another one had the port then");
        let crowded = CallRecord { without_place: [26 * MINUTE, 0], ..CallRecord::default() };
        let says = |born: u64| callers(&crowded, 4, true, [0, born * MINUTE, before(60)]);
        assert_eq!(callers(&crowded, 5, false, [0, 0, before(60)]), [], "a port of another network");
        assert_eq!(
            [says(25), says(27)],
            [vec![Caller::Unknown], vec![]],
            "of a fifth one it is not known who it is"
        );
    }

    #[test]
    fn what_was_not_written_down_is_over_after_ten_minutes() {
        let says = |unseen, born, now| callers(&CallRecord::default(), 4, true, [unseen, born, before(now)]);
        assert_eq!([2, 10].map(|now| says(MINUTE, 0, now)), [(); 2].map(|()| vec![Caller::Unknown]));
        assert_eq!(says(MINUTE, 0, 11), []);
        assert_eq!(says(MINUTE, MINUTE + 1, 10), [], "a call of another that had the port");
        assert_eq!(says(FOR_GOOD, 0, 1000), [Caller::Unknown], "what was kept of before is gone");
    }
}

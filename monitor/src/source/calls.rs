//! Who called a followed process over TCP lately, and which connections a followed process began: what the kernel side has seen.
//!
//! Invariant: "nobody" is said only of a port that was watched for the whole time that counts, or since its server was born.

use std::collections::BTreeSet;

use aya::{
    Ebpf,
    maps::{HashMap, MapData},
};
use monitor_common::{CallRecord, Caller as By, LATELY};

use super::{decode::id, kernel_error::KernelError, kernel_side::Caller, maps};
use crate::os::clock;
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

/// Reads the maps CALLED and CALLERS. It works as long as anybody has them.
#[derive(Debug)]
pub struct Calls {
    called: HashMap<MapData, u32, CallRecord>,
    callers: HashMap<MapData, u64, By>,
    /// Since when calls are written down.
    since: BootTime,
    /// The same time of the clock that calls are written down with, which stands still while the host is asleep.
    awake_since: u64,
}

impl Calls {
    pub(super) fn new(programs: &mut Ebpf) -> Result<Self, KernelError> {
        Ok(Self {
            called: maps::hash_map(programs, "CALLED")?,
            callers: maps::hash_map(programs, "CALLERS")?,
            since: clock::now(),
            awake_since: clock::awake(),
        })
    }

    /// Who called this port in this network, where a server listens whose oldest process this is: a part of it that has the port may
    /// be started anew.
    pub fn of(&self, network: u32, port: u16, oldest: ProcessId) -> Result<Vec<Caller>, String> {
        let record =
            maps::value(&self.called, u32::from(port)).map_err(|e| e.to_string())?.unwrap_or_default();
        let is_older = oldest.start <= self.since.ticks();
        // Since its birth the host has been awake for that long at most.
        let age = clock::now().since(oldest.born());
        let now = clock::awake();
        let born = now.saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        Ok(callers(&record, network, is_older, [self.awake_since, born, now]))
    }

    /// What the next daemon has to know.
    pub fn kept(&self) -> Vec<KeptCalls> {
        let records = self.called.iter().filter_map(Result::ok);
        let has_callers =
            |record: &CallRecord| record.without_place != 0 || record.by.iter().any(|call| call.at != 0);
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

/// What such a record says `now` of this network: in another one the same port is another's. `is_older`: the server that has the
/// port was there when the hook was attached. An earlier call than its birth (`born`) was one of another that had the port.
fn callers(record: &CallRecord, network: u32, is_older: bool, [since, born, now]: [u64; 3]) -> Vec<Caller> {
    let is_lately = |at: u64| at != 0 && now.saturating_sub(at) < LATELY;
    let here = record.by.iter().filter(|call| call.caller.network == network);
    let known = here.filter_map(|call| {
        let By { tgid, start, head, agent, .. } = call.caller;
        let lately = is_lately(call.at);
        let counts = lately || call.at != 0 && call.at >= born;
        counts.then(|| Caller::Process { by: id(tgid, start), above: [head, agent], lately })
    });
    let anybody = is_lately(record.by_anybody).then_some(Caller::Anybody);
    // Whoever found no place may be any of those that live.
    let may_call_again = record.without_place != 0 && record.without_place >= born;
    let unknown = (may_call_again || is_older && is_lately(since)).then_some(Caller::Unknown);
    anybody.into_iter().chain(unknown).chain(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use monitor_common::Call;

    const MINUTE: u64 = 60 * 1_000_000_000;

    #[test]
    fn a_call_counts_for_ten_minutes_and_its_caller_longer() {
        let call = |tgid, at| Call {
            at,
            caller: By { start: 50 * 10_000_000, tgid, head: 6, network: 4, ..By::default() },
        };
        let by = [call(7, 25 * MINUTE), call(8, 31 * MINUTE), Call::default(), Call::default()];
        let record = CallRecord { by_anybody: 20 * MINUTE, without_place: 0, by };
        let says = |now: u64| callers(&record, 4, false, [MINUTE, 25 * MINUTE, now * MINUTE]);
        let caller = |pid, lately| Caller::Process { by: ProcessId::new(pid, 50), above: [6, 0], lately };
        let (process, before) = (|pid| caller(pid, true), |pid| caller(pid, false));
        assert_eq!(says(29), [Caller::Anybody, process(7), process(8)]);
        assert_eq!([30, 34].map(says), [(); 2].map(|()| vec![process(7), process(8)]));
        assert_eq!(says(35), [before(7), process(8)], "both, whoever was the last");
        assert_eq!(says(41), [before(7), before(8)]);
        let later = callers(&record, 4, false, [MINUTE, 25 * MINUTE + 1, 45 * MINUTE]);
        assert_eq!(later, [before(8)], "the other one called another that had the port");
        assert_eq!(callers(&CallRecord::default(), 4, false, [MINUTE, 0, 2 * MINUTE]), []);
        let crowded = CallRecord { without_place: 26 * MINUTE, ..CallRecord::default() };
        let says = |born: u64| callers(&crowded, 4, false, [MINUTE, born * MINUTE, 60 * MINUTE]);
        assert_eq!(
            [says(25), says(27)],
            [vec![Caller::Unknown], vec![]],
            "of a fifth one it is not known who it is"
        );
    }

    #[test]
    fn who_was_there_before_is_known_after_ten_minutes() {
        let says = |now: u64| callers(&CallRecord::default(), 4, true, [MINUTE, 0, now * MINUTE]);
        assert_eq!([2, 10].map(says), [(); 2].map(|()| vec![Caller::Unknown]));
        assert_eq!(says(11), []);
    }
}

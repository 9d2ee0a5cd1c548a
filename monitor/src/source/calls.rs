//! Who called a followed process over TCP lately: the calls that the kernel side has seen end.
//!
//! Invariant: "nobody" is said only of a port that was watched for the whole time that counts, or since its holder was born.

use aya::{
    Ebpf,
    maps::{HashMap, MapData},
};
use monitor_common::{CallRecord, LATELY};

use super::{decode::id, kernel_error::KernelError, kernel_side::LastCaller, maps};
use crate::os::clock;
use orphand_core::model::{BootTime, ProcessId};

/// Reads the map CALLED. It works as long as anybody has it.
#[derive(Debug)]
pub struct Calls {
    called: HashMap<MapData, u32, CallRecord>,
    /// Since when calls are written down.
    since: BootTime,
    /// The same time of the clock that calls are written down with, which stands still while the host is asleep.
    awake_since: u64,
}

impl Calls {
    pub(super) fn new(programs: &mut Ebpf) -> Result<Self, KernelError> {
        Ok(Self {
            called: maps::hash_map(programs, "CALLED")?,
            since: clock::now(),
            awake_since: clock::awake(),
        })
    }

    /// Who called this port lately, at which `holder` listens.
    pub fn lately(&self, port: u16, holder: ProcessId) -> Result<LastCaller, String> {
        let record =
            maps::value(&self.called, u32::from(port)).map_err(|e| e.to_string())?.unwrap_or_default();
        let is_older = holder.start <= self.since.ticks();
        // Since its birth the host has been awake for that long at most.
        let age = clock::now().since(holder.born());
        let now = clock::awake();
        let born = now.saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        Ok(caller(&record, is_older, [self.awake_since, born, now]))
    }
}

/// What such a record says `now`. `is_older`: who has the port was there when the hook was attached. An earlier call than
/// its birth (`born`) was one of another that had the port.
const fn caller(record: &CallRecord, is_older: bool, [since, born, now]: [u64; 3]) -> LastCaller {
    const fn is_lately(at: u64, now: u64) -> bool {
        at != 0 && now.saturating_sub(at) < LATELY
    }
    if is_lately(record.by_anybody, now) {
        LastCaller::Anybody
    } else if is_older && is_lately(since, now) {
        LastCaller::Unknown
    } else if is_lately(record.by_caller, now) {
        LastCaller::Process(id(record.caller.tgid, record.caller.start))
    } else if record.by_caller != 0 && record.by_caller >= born {
        LastCaller::Before(id(record.caller.tgid, record.caller.start))
    } else {
        LastCaller::Nobody
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60 * 1_000_000_000;

    #[test]
    fn a_call_counts_for_ten_minutes() {
        let by = monitor_common::Caller { start: 50 * 10_000_000, tgid: 7, port: 1 };
        let record = CallRecord { by_anybody: 20 * MINUTE, by_caller: 25 * MINUTE, caller: by };
        let says = |now: u64| caller(&record, false, [MINUTE, 25 * MINUTE, now * MINUTE]);
        let process = LastCaller::Process(ProcessId::new(7, 50));
        let before = LastCaller::Before(ProcessId::new(7, 50));
        assert_eq!([29, 30, 34, 35].map(says), [LastCaller::Anybody, process, process, before]);
        let later = caller(&record, false, [MINUTE, 25 * MINUTE + 1, 40 * MINUTE]);
        assert_eq!(later, LastCaller::Nobody, "of another that had the port");
        assert_eq!(caller(&CallRecord::default(), false, [MINUTE, 0, 2 * MINUTE]), LastCaller::Nobody);
    }

    #[test]
    fn who_was_there_before_is_known_after_ten_minutes() {
        let says = |now: u64| caller(&CallRecord::default(), true, [MINUTE, 0, now * MINUTE]);
        assert_eq!([2, 10, 11].map(says), [LastCaller::Unknown, LastCaller::Unknown, LastCaller::Nobody]);
    }
}

//! The capabilities that the daemon gives up after the kernel side is attached and tested.
//!
//! Invariant: after [`drop_to`] this thread, and every thread that it starts, can read, judge and signal, but
//! cannot load a BPF program any more. A program that it executes gains no capability. Capabilities belong to
//! a thread, so this is only for the daemon's start, before there is a second thread.

use std::io;

use anyhow::{Result, anyhow};
use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
        clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    },
};

/// To load and attach tracing programs, at the start.
pub const TO_LOAD: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);

/// To inspect all processes and their wires.
const TO_INSPECT: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH);

/// What stays: to inspect, and to signal.
const STAYS: CapabilitySet = TO_INSPECT.union(CapabilitySet::KILL);

/// What a daemon needs that ends nothing, whoever asks.
pub const TO_OBSERVE: CapabilitySet = TO_LOAD.union(TO_INSPECT);

/// What a daemon needs.
pub const TO_RUN: CapabilitySet = TO_LOAD.union(STAYS);

/// Capabilities, and for each the larger one that includes it.
const LARGER: [(CapabilitySet, CapabilitySet); 3] = [
    (CapabilitySet::BPF, CapabilitySet::SYS_ADMIN),
    (CapabilitySet::PERFMON, CapabilitySet::SYS_ADMIN),
    (CapabilitySet::DAC_READ_SEARCH, CapabilitySet::DAC_OVERRIDE),
];

/// To become another user: for helpers, and for hooks.
pub const OTHER_USERS: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// What is out of effect but for moments ([`raise`]): to enter other network namespaces, in which the sockets of
/// containers are, and their PID namespaces, in which their service managers answer, and to start helpers as the users whose
/// files they read.
const HELD_BACK: CapabilitySet = CapabilitySet::SYS_ADMIN.union(OTHER_USERS);

fn failed(operation: &str) -> impl FnOnce(Errno) -> anyhow::Error {
    move |errno| {
        let advice = "a security module or seccomp filter must allow capset(2) and prctl(2)";
        anyhow!("cannot {operation}: {}; {advice}", io::Error::from(errno))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub effective: CapabilitySet,
    /// In the permitted set only: not in effect, but a thread may put them into effect for a moment.
    pub held_back: CapabilitySet,
}

impl Kept {
    /// The capabilities as one line: `CAP_KILL, CAP_SYS_PTRACE`.
    pub fn in_words(self) -> String {
        let mut words = names(self.effective);
        if !self.held_back.is_empty() {
            words = format!("{words}; held back until they are needed: {}", names(self.held_back));
        }
        words
    }
}

/// What of `wanted` is not in effect, nor the larger one. Nothing, if that cannot be asked.
pub fn missing(wanted: CapabilitySet) -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| lacks(sets.effective, wanted))
}

fn lacks(have: CapabilitySet, wanted: CapabilitySet) -> CapabilitySet {
    let included = LARGER.iter().filter(|(_, larger)| have.contains(*larger));
    wanted - included.fold(have, |all, (one, _)| all | *one)
}

/// What of `have` does for `wanted`: the larger one only where it takes that.
fn enough(have: CapabilitySet, wanted: CapabilitySet) -> CapabilitySet {
    let absent = wanted - have;
    let larger = LARGER.iter().filter(|(one, _)| absent.contains(*one));
    larger.fold(have & wanted, |all, (_, larger)| all | (have & *larger))
}

pub fn names(set: CapabilitySet) -> String {
    let mut names: Vec<String> = set.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    names.sort_unstable();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Gives up all but what is needed from here on, and `besides`. `works` tries the BPF maps: if that fails without `CAP_BPF`
/// (before Linux 5.19 with `kernel.unprivileged_bpf_disabled`), that one stays.
pub fn drop_to(besides: CapabilitySet, works: impl FnOnce() -> bool) -> Result<Kept> {
    let had = capabilities(None).map_err(failed("read our capabilities"))?;
    // First, while CAP_SETPCAP is there. Without it (in a service) it stays as the service manager made it, and a program could gain
    // some only by the ambient set, which is cleared next.
    if had.effective.contains(CapabilitySet::SETPCAP) {
        clear_bounding_set().map_err(failed("clear the bounding set"))?;
    }
    clear_ambient_capability_set().map_err(failed("clear the ambient set"))?;
    let kept = kept(had.permitted, besides);
    // Out of effect during the test, but still permitted, so that it can come back.
    let probation = kept.effective | kept.held_back | (had.permitted & CapabilitySet::BPF);
    set(kept.effective, probation)?;
    let bpf = if works() { CapabilitySet::empty() } else { CapabilitySet::BPF };
    let kept = self::kept(had.permitted, besides | bpf);
    set(kept.effective, kept.effective | kept.held_back)?;
    Ok(kept)
}

/// Gives up all capabilities for good, for a process that is to have none, nor gain one by execve(2).
pub fn drop_all() -> io::Result<()> {
    // This takes a capability itself. Who lacks it gains nothing by execve(2) either, or had less from the start.
    let _ = clear_bounding_set();
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

fn clear_bounding_set() -> Result<(), Errno> {
    // The kernel knows fewer capabilities than the mask has bits, and reports an error for the others.
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    let mut known = all.take_while(|one| capability_is_in_bounding_set(*one).is_ok());
    known.try_for_each(remove_capability_from_bounding_set)
}

/// Capabilities that are in effect for the calling thread as long as this value lives.
#[derive(Debug)]
pub struct Raised(CapabilitySets);

/// Puts capabilities into effect that were held back; `None` if they are not all permitted.
pub fn raise(wanted: CapabilitySet) -> Option<Raised> {
    let had = capabilities(None).ok().filter(|had| had.permitted.contains(wanted))?;
    let sets = CapabilitySets { effective: had.effective | wanted, ..had };
    set_capabilities(None, sets).ok()?;
    Some(Raised(had))
}

impl Drop for Raised {
    fn drop(&mut self) {
        // To give up what is in effect needs no right.
        let _ = set_capabilities(None, self.0);
    }
}

fn kept(permitted: CapabilitySet, besides: CapabilitySet) -> Kept {
    let effective = enough(permitted, STAYS | besides);
    Kept { effective, held_back: (permitted & HELD_BACK) - effective }
}

fn set(effective: CapabilitySet, permitted: CapabilitySet) -> Result<()> {
    let sets = CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed("give up capabilities"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_stays_than_was_there() {
        let all = CapabilitySet::all();
        let service = TO_RUN;
        let (none, bpf) = (CapabilitySet::empty(), CapabilitySet::BPF);
        for (permitted, besides, words) in [
            (service, none, "CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SYS_PTRACE"),
            (
                service | OTHER_USERS,
                none,
                "CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SYS_PTRACE; held back until they are needed: CAP_SETGID, CAP_SETUID",
            ),
            (service, OTHER_USERS | bpf, "CAP_BPF, CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SYS_PTRACE"),
            (CapabilitySet::PERFMON, OTHER_USERS | bpf, "none"),
            // Root of a container.
            (
                (service - CapabilitySet::DAC_READ_SEARCH) | CapabilitySet::DAC_OVERRIDE,
                none,
                "CAP_DAC_OVERRIDE, CAP_KILL, CAP_SYS_PTRACE",
            ),
            (service | CapabilitySet::DAC_OVERRIDE, none, "CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SYS_PTRACE"),
            (
                all,
                none,
                "CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SYS_PTRACE; held back until they are needed: CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN",
            ),
        ] {
            let kept = kept(permitted, besides);
            assert!(permitted.contains(kept.effective | kept.held_back));
            assert_eq!(kept.in_words(), words);
        }
        let kept = kept(all, OTHER_USERS).effective;
        assert_eq!(kept, STAYS | OTHER_USERS);
    }

    #[test]
    fn each_capability_or_the_larger_one() {
        let lacks = |have| names(lacks(have, TO_RUN));
        assert_eq!(lacks(CapabilitySet::all()), "none");
        assert_eq!(lacks(TO_RUN), "none");
        for (one, name) in TO_RUN.iter_names().map(|(name, one)| (one, name)) {
            assert_eq!(lacks(TO_RUN - one), format!("CAP_{name}"));
        }
        assert_eq!(lacks(CapabilitySet::SYS_ADMIN | CapabilitySet::DAC_OVERRIDE), "CAP_KILL, CAP_SYS_PTRACE");
        assert_eq!(super::lacks(TO_OBSERVE, TO_OBSERVE), CapabilitySet::empty());
        assert_eq!(TO_RUN - TO_OBSERVE, CapabilitySet::KILL);
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn what_was_held_back_is_in_effect_for_a_moment() {
        let after = std::thread::spawn(|| {
            let had = capabilities(None).unwrap();
            let out = CapabilitySets { effective: had.effective.difference(OTHER_USERS), ..had };
            set_capabilities(None, out).unwrap();
            let raised = raise(OTHER_USERS).unwrap();
            assert!(capabilities(None).unwrap().effective.contains(OTHER_USERS));
            drop(raised);
            let after = capabilities(None).unwrap();
            let without = after.permitted.difference(OTHER_USERS);
            set_capabilities(None, CapabilitySets { permitted: without, ..after }).unwrap();
            assert!(raise(OTHER_USERS).is_none());
            after
        });
        assert!(!after.join().unwrap().effective.intersects(OTHER_USERS));
    }

    /// Capabilities belong to a thread. The other threads of the test program keep theirs.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn what_maps_still_need_stays() {
        for works in [false, true] {
            let now = std::thread::spawn(move || {
                let before = capabilities(None).unwrap();
                assert!(before.effective.contains(CapabilitySet::BPF | CapabilitySet::PERFMON));
                let kept = drop_to(OTHER_USERS, || {
                    assert!(!capabilities(None).unwrap().effective.contains(CapabilitySet::BPF));
                    works
                });
                (
                    kept.unwrap(),
                    capabilities(None).unwrap(),
                    capability_is_in_bounding_set(CapabilitySet::KILL),
                )
            });
            let (kept, now, bounding) = now.join().unwrap();
            let users = OTHER_USERS;
            let bpf = if works { CapabilitySet::empty() } else { CapabilitySet::BPF };
            assert_eq!(kept.effective, STAYS | users | bpf);
            assert_eq!((now.effective, now.permitted), (kept.effective, kept.effective | kept.held_back));
            assert!(now.inheritable.is_empty() && bounding == Ok(false));
        }
    }
}

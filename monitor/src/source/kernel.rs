//! The kernel side seen from user space: loads and attaches the eBPF programs, drains their ring, tells them
//! whom to follow.
//!
//! Invariant: every record the programs made is handed out by [`KernelSource::drain`], or counted by
//! [`KernelSource::losses`]. For the daemon and the self-test only.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex},
    thread,
};

use aya::{
    Btf, Ebpf, EbpfError, EbpfLoader, Endianness,
    maps::{Array, HashMap, MapData, PerCpuArray, RingBuf},
};
use monitor_common::{
    COMM_LEN, Counter, Counters, Header, SHARE_SLOTS, SharedCounts, Tuning, record, ring_cost,
};

use super::{
    attach::{self, CALL_HOOK, optional},
    calls::{self, Calls, KeptCalls},
    decode::decode,
    holders::{self, Holders},
    kernel_error::KernelError,
    kernel_side::KernelSide,
    layout, log,
    maps::{counts, hash_map, set_candidates, take},
    members::{Members, Room},
    misses::Misses,
    tasks::{self, Tasks},
    threads::Threads,
};
use crate::{
    host::own_network,
    os::{capabilities, lock},
};
use orphand_core::model::{Candidate, Losses, ProcessEvent, RING_BYTES, SetsidHook};

/// The programs, built by build.rs.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/orphand-ebpf"));
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Records that may be taken beyond those that were there when it was asked for them.
const BEYOND: u64 = 1024;
/// No record takes less of the ring: the smallest one and the ring's own header.
const SMALLEST: u32 = 32 + 8;
/// Tries to get at a record that was counted and cannot be read yet. Writing one takes a microsecond, on another CPU.
const PATIENCE: u32 = 200;

/// What the kernel side is told once.
#[derive(Clone, Debug)]
pub struct KernelOptions {
    /// The names whose exec is worth a report.
    pub candidates: Vec<Candidate>,
    /// Whether names that contain `mcp` count as candidates that need no wire.
    pub mcp_names: bool,
    /// Whether any program is a candidate whose standard input and output are wires that its parent, no shell, made.
    pub wired_strangers: bool,
    pub setsid: SetsidHook,
    /// Size of the ring in bytes, rounded up to a power of two.
    pub ring_bytes: u32,
    /// How many processes can be followed at once; those of one user half of that.
    pub members: u32,
    /// How many forks below a candidate are reported until it is judged.
    pub pending_budget: u32,
    /// How many threads can be followed at once.
    pub threads: u32,
    /// How many pipes and sockets one pass over all descriptors can be about; for more it takes several.
    pub wanted: u32,
    /// Whether the programs log (aya-log); free if not.
    pub log: bool,
    /// Who called before, as an earlier daemon has kept it.
    pub calls: Vec<KeptCalls>,
    /// Of how many ports it is written down who calls them; of all, except in tests.
    pub called: u32,
}

impl Default for KernelOptions {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            mcp_names: true,
            wired_strangers: true,
            setsid: SetsidHook::default(),
            ring_bytes: RING_BYTES,
            members: 1 << 15,
            pending_budget: 256,
            threads: 1 << 12,
            wanted: 1 << 13,
            log: false,
            calls: Vec::new(),
            called: 1 << 16,
        }
    }
}

/// The attached programs, their ring and their maps. Dropping it detaches them.
pub struct KernelSource {
    ring: RingBuf<MapData>,
    ring_shares: SharedCounts<SHARE_SLOTS>,
    candidates: HashMap<MapData, [u8; COMM_LEN], u32>,
    pub members: Members,
    pub threads: Threads,
    idle: Array<MapData, u32>,
    counters: PerCpuArray<MapData, Counters>,
    counted: Counters,
    handed_out: u64,
    /// The most records that the ring can hold.
    most: u32,
    /// Records that were not understood: versions of the two sides that do not fit.
    undecodable: u64,
    log: Option<log::Reader>,
    hooks: Vec<String>,
    side: KernelSide,
    misses: Misses,
    // Holds the programs and their links.
    programs: Arc<Mutex<Ebpf>>,
}

impl KernelSource {
    /// Loads and attaches the programs. From here on candidates' execs are reported.
    pub fn open(options: &KernelOptions) -> Result<Self, KernelError> {
        attach::require_rights(capabilities::TO_LOAD)?;
        attach::require_host_namespaces()?;
        monitor_common::share_heap();
        // The loader reads the types of the kernel as well, each time and for nothing: that takes as long as ours.
        let (layout, loader) = thread::scope(|scope| {
            let loader = thread::Builder::new().spawn_scoped(scope, EbpfLoader::new);
            let layout = fs::read(BTF).map_err(|error| KernelError::no_btf(BTF, &error));
            let layout = layout.and_then(|bytes| layout::read(&bytes));
            (layout, loader.ok().and_then(|loader| loader.join().ok()))
        });
        let (layout, mut loader) = (layout?, loader.unwrap_or_default());
        let btf = Btf::parse(&layout.functions, Endianness::default());
        let btf = btf.map_err(|error| KernelError::load(&EbpfError::from(error)))?;
        attach::raise_memlock();

        let ring_bytes = options.ring_bytes.max(4096).checked_next_power_of_two().unwrap_or(1 << 31);
        let room = Room::among(options.members);
        let tuning = Tuning {
            ring_bytes,
            pending_budget: options.pending_budget,
            mcp_names: u32::from(options.mcp_names),
            wired_strangers: u32::from(options.wired_strangers),
            member_share: room.share,
            seed: room.seed,
            exit_has_group_dead: u32::from(layout.exit_has_group_dead),
            file_count_of_one: u32::from(!layout.counts_files_from_zero),
            sock_userlocks: layout.sock_userlocks,
            pipe_device: holders::pipe_device(),
            host_network: own_network().unwrap_or_default(),
            tty: layout.tty,
        };
        // A read-only global: at level 0 the verifier takes the logging out of the programs.
        let log_level: u8 = if options.log { u8::MAX } else { 0 };
        let mut programs = loader
            .btf(None)
            .override_global(aya_log::LEVEL, &log_level, true)
            .override_global("OFFSETS", &layout.events, true)
            .override_global("SIGNAL_OFFSETS", &layout.signals.clone().unwrap_or_default(), true)
            .override_global("CALL_OFFSETS", &layout.calls.clone().unwrap_or_default(), true)
            .override_global("END_OFFSETS", &layout.ends.clone().unwrap_or_default(), true)
            .override_global("TASK_OFFSETS", &layout.tasks.clone().unwrap_or_default(), true)
            .override_global("TUNING", &tuning, true)
            .map_max_entries("RECORDS", ring_bytes)
            .map_max_entries("MEMBERS", options.members)
            .map_max_entries("THREADS", options.threads)
            .map_max_entries("WANTED", options.wanted)
            .map_max_entries("CALLED", options.called)
            .load(OBJECT)
            .map_err(|error| KernelError::load(&error))?;

        let mut candidates = hash_map(&mut programs, "CANDIDATES")?;
        set_candidates(&mut candidates, &options.candidates)?;
        let wanted = hash_map(&mut programs, "WANTED")?;
        let log = if options.log { Some(log::open(&mut programs)?) } else { None };
        attach::load_ahead(&mut programs, &btf);
        let mut hooks = attach::attach(&mut programs, options.setsid, &btf)?;
        let signals = layout.signals;
        let signals = signals.and_then(|_| attach::raw_tracepoint(&mut programs, attach::SIGNAL));
        let without = "who sends a signal to a server is not told";
        hooks.extend(optional(attach::SIGNAL, without, signals).map(|()| attach::SIGNAL_HOOK.to_owned()));
        let calls = layout.calls.and_then(|_| {
            calls::enter(&mut programs, &options.calls)?;
            attach::raw_tracepoint(&mut programs, attach::CONNECTION)?;
            Calls::new(&mut programs, tuning.host_network)
        });
        let without =
            "of calls over TCP only those of the last minute are seen, and none that another host has ended";
        let calls = optional(attach::CONNECTION, without, calls);
        hooks.extend(calls.iter().filter_map(|_| attach::bind(&mut programs, options.setsid, &btf)));
        let mut source = Self {
            candidates,
            ring: RingBuf::try_from(take(&mut programs, "RECORDS")?)?,
            ring_shares: counts(&mut programs, "RING_SHARES")?,
            members: Members::new(&mut programs, room)?,
            threads: Threads::new(&mut programs, options.threads)?,
            idle: Array::try_from(take(&mut programs, "READER_IDLE")?)?,
            counters: PerCpuArray::try_from(take(&mut programs, "COUNTERS")?)?,
            counted: Counters::default(),
            handed_out: 0,
            most: ring_bytes / SMALLEST,
            undecodable: 0,
            log,
            hooks,
            side: KernelSide { calls: calls.map(Arc::new), ..KernelSide::default() },
            misses: Misses::of(&programs),
            programs: Arc::new(Mutex::new(programs)),
        };
        let programs = &source.programs;
        let holders = layout.ends;
        let holders = holders.and_then(|_| Holders::open(programs, &btf, wanted, options.wanted));
        let tasks = layout.tasks.and_then(|_| Tasks::open(programs, &btf));
        let without = "who holds a wire is read from /proc, which does not show all";
        source.side.holders =
            optional(holders::HOOK, without, holders).map(|holders| Arc::new(Mutex::new(holders)));
        let without =
            "terminals, namespaces and debuggers are read from /proc, where a process may not answer";
        source.side.tasks = optional(tasks::HOOK, without, tasks).map(Arc::new);
        let KernelSide { holders, tasks, calls } = &source.side;
        let holders = holders.iter().map(|_| holders::HOOK);
        let further = holders.chain(tasks.iter().map(|_| tasks::HOOK)).chain(calls.iter().map(|_| CALL_HOOK));
        source.hooks.extend(further.map(str::to_owned));
        drop(btf);
        monitor_common::trim_heap();
        Ok(source)
    }

    /// What it answers beside the records.
    pub fn side(&self) -> KernelSide {
        self.side.clone()
    }

    /// Whose execs are reported from now on.
    pub fn set_candidates(&mut self, wanted: &[Candidate]) -> Result<(), KernelError> {
        set_candidates(&mut self.candidates, wanted)
    }

    /// Whether the maps can be used: a try that changes nothing.
    pub fn works(&mut self) -> bool {
        let KernelSide { holders, tasks, .. } = &self.side;
        let passes = holders.as_ref().is_none_or(|holders| lock(holders).prove().is_ok())
            && tasks.as_ref().is_none_or(|tasks| tasks.prove().is_ok());
        passes && self.counters().is_ok() && self.set_idle(false).is_ok() && self.members.untrack(0).is_ok()
    }

    pub fn hooks(&self) -> Vec<String> {
        self.hooks.clone()
    }

    /// Hands out what is in the ring, in causal order.
    pub fn drain(&mut self, mut f: impl FnMut(ProcessEvent)) {
        // At most what fits into the ring: whoever fills it as fast as it is emptied keeps nobody from the rest of the loop.
        for _ in 0..self.most {
            if !self.hand_out(&mut f) {
                break;
            }
        }
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// Hands out all that had been reported when this was called, and not much more: a storm cannot keep it busy. False if something
    /// of it was lost that may be about this user, is not understood, or does not come: a record in front of it is still being
    /// written.
    pub fn catch_up(
        &mut self,
        uid: Option<u32>,
        mut f: impl FnMut(ProcessEvent),
    ) -> Result<bool, KernelError> {
        // The programs count a record before they write it: whatever had been written is in this number.
        let now = self.counters()?;
        let lost = self.lost_until(&now);
        // It is known whose the others are.
        let refused = lost.member > 0 && uid.map_or(Ok(true), |uid| self.members.is_refused(uid))?;
        if refused || (Losses { member: 0, ..lost }) != Losses::default() {
            return Ok(false);
        }
        let wanted = now.made().saturating_sub(now.dropped());
        let most = wanted.saturating_add(BEYOND);
        let undecodable = self.undecodable;
        for _ in 0..PATIENCE {
            while self.handed_out < most && self.hand_out(&mut f) {}
            if self.handed_out >= wanted {
                return Ok(self.undecodable == undecodable);
            }
            std::thread::yield_now();
        }
        Ok(false)
    }

    /// Hands out the next record. Whether there was one.
    fn hand_out(&mut self, f: &mut impl FnMut(ProcessEvent)) -> bool {
        let Some(item) = self.ring.next() else { return false };
        self.handed_out += 1;
        let cost = ring_cost(u32::try_from(item.len()).unwrap_or(u32::MAX - 16));
        let (header, decoded) = (record::<Header>(&item), decode(&item));
        // Its room is free.
        drop(item);
        if let Some(header) = header {
            self.ring_shares.subtract(usize::from(header.slot), cost);
        }
        match decoded {
            Ok(event) => {
                if let ProcessEvent::ThreadExit { thread, .. } = event {
                    self.threads.ended(thread);
                }
                f(event);
            }
            Err(error) => {
                self.undecodable += 1;
                tracing::error!(%error, "a record of the kernel side is not understood");
            }
        }
        true
    }

    /// Whether the next record of any kind wakes the reader, once. Before it sleeps for good the reader sets it and then
    /// drains once more: what came in between has not woken anybody.
    pub fn set_idle(&mut self, idle: bool) -> Result<(), KernelError> {
        Ok(self.idle.set(0, u32::from(idle), 0)?)
    }

    /// What was lost since the last call. Forks below a candidate beyond its budget are no loss.
    pub fn losses(&mut self) -> Result<Losses, KernelError> {
        let now = self.counters()?;
        let mut losses = self.lost_until(&now);
        losses += self.misses.since_last_time();
        let unfollowed = now.get(Counter::BudgetUsedUp) - self.counted.get(Counter::BudgetUsedUp);
        if unfollowed > 0 {
            tracing::debug!(unfollowed, "forks below a process that is not judged yet were not followed");
        }
        self.counted = now;
        Ok(losses)
    }

    fn lost_until(&self, now: &Counters) -> Losses {
        let delta = |what| now.get(what) - self.counted.get(what);
        Losses {
            fork: delta(Counter::ForkDropped),
            exec: delta(Counter::ExecDropped),
            exit: delta(Counter::ExitDropped),
            setsid: delta(Counter::SetsidDropped),
            member: delta(Counter::MembersFull),
        }
    }

    /// What went wrong in the programs since the start, by kind; "it cannot happen" included.
    pub fn errors(&self) -> Result<BTreeMap<String, u64>, KernelError> {
        let now = self.counters()?;
        let kinds = [
            ("members_full", Counter::MembersFull),
            ("pending_budget", Counter::BudgetUsedUp),
            ("unreadable", Counter::Unreadable),
            ("argv_fault", Counter::ArgvFault),
            ("exe_fault", Counter::ExeFault),
            ("no_scratch", Counter::NoScratch),
            ("anchor_forgotten", Counter::AnchorForgotten),
            ("call_dropped", Counter::CallDropped),
            ("signal_dropped", Counter::SignalDropped),
        ];
        let mut errors: BTreeMap<String, u64> =
            kinds.into_iter().map(|(kind, counter)| (kind.to_owned(), now.get(counter))).collect();
        errors.insert("undecodable".to_owned(), self.undecodable);
        errors.insert("threads_full".to_owned(), self.threads.full);
        Ok(errors)
    }

    /// What the programs have counted since the start.
    pub fn counters(&self) -> Result<Counters, KernelError> {
        let mut sum = Counters::default();
        for counters in self.counters.get(&0, 0)?.iter() {
            sum.add(counters);
        }
        Ok(sum)
    }
}

impl AsFd for KernelSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

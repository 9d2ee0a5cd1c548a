//! The kernel side seen from user space: loads and attaches the eBPF programs, drains their ring, tells them
//! whom to follow.
//!
//! Invariant: every record the programs made is handed out by [`KernelSource::drain`], or counted by
//! [`KernelSource::losses`]. For the daemon and the self-test only.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    sync::{Arc, Mutex, PoisonError},
};

use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, HashMap, MapData, PerCpuArray, RingBuf},
};
use monitor_common::{COMM_LEN, Counter, Counters, EndOffsets, Tuning};

pub use super::produced::Produced;
use super::{
    attach,
    candidates::{self, take},
    decode::decode,
    holders::{self, Holders},
    kernel_error::KernelError,
    layout::{self, LayoutError},
    log,
    members::{Members, Room, RoomInUse, Tracked},
    threads::Threads,
};
use orphand_core::model::{Candidate, Losses, ProcessEvent, ProcessId, RingSize, SetsidHook, Tracking};

/// The programs, built by build.rs.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/orphand-ebpf"));
/// The kernel's type information.
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
    /// How setsid(2) is seen.
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
}

impl Default for KernelOptions {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            mcp_names: true,
            wired_strangers: true,
            setsid: SetsidHook::default(),
            ring_bytes: RingSize::DEFAULT.bytes(),
            members: 1 << 15,
            pending_budget: 256,
            threads: 1 << 12,
            wanted: 1 << 13,
            log: false,
        }
    }
}

/// The attached programs, their ring and their maps. Dropping it detaches them.
pub struct KernelSource {
    ring: RingBuf<MapData>,
    candidates: HashMap<MapData, [u8; COMM_LEN], u32>,
    members: Members,
    threads: Threads,
    idle: Array<MapData, u32>,
    counters: PerCpuArray<MapData, Counters>,
    counted: Counters,
    /// Records taken from the ring since the start.
    handed_out: u64,
    /// The most records that the ring can hold.
    most: u32,
    undecodable: u64,
    log: Option<log::Reader>,
    hooks: Vec<String>,
    holders: Option<Holders>,
    // Holds the programs and their links.
    programs: Arc<Mutex<Ebpf>>,
}

impl KernelSource {
    /// Loads and attaches the programs. From here on candidates' execs are reported.
    pub fn open(options: &KernelOptions) -> Result<Self, KernelError> {
        attach::require_rights()?;
        attach::require_initial_pid_namespace()?;
        let btf = fs::read(BTF).map_err(|source| KernelError::NoBtf { path: BTF, source })?;
        let (offsets, ends) = layout::read(&btf)?;
        drop(btf);
        attach::raise_memlock();

        let ring_bytes = options.ring_bytes.max(4096).checked_next_power_of_two().unwrap_or(1 << 31);
        let room = Room::among(options.members);
        let tuning = Tuning {
            ring_quarter: ring_bytes / 4,
            pending_budget: options.pending_budget,
            mcp_names: u32::from(options.mcp_names),
            wired_strangers: u32::from(options.wired_strangers),
            member_share: room.share,
            seed: room.seed,
        };
        // A read-only global: at level 0 the verifier takes the logging out of the programs.
        let log_level: u8 = if options.log { u8::MAX } else { 0 };
        let mut programs = EbpfLoader::new()
            .btf(None)
            .override_global(aya_log::LEVEL, &log_level, true)
            .override_global("OFFSETS", &offsets, true)
            .override_global("END_OFFSETS", ends.as_ref().unwrap_or(&EndOffsets::default()), true)
            .override_global("TUNING", &tuning, true)
            .map_max_entries("RECORDS", ring_bytes)
            .map_max_entries("MEMBERS", options.members)
            .map_max_entries("THREADS", options.threads)
            .map_max_entries("WANTED", options.wanted)
            .load(OBJECT)
            .map_err(KernelError::load)?;

        let mut candidates = HashMap::<_, [u8; COMM_LEN], u32>::try_from(take(&mut programs, "CANDIDATES")?)?;
        candidates::set(&mut candidates, &options.candidates)?;
        let wanted = HashMap::try_from(take(&mut programs, "WANTED")?)?;
        let log = if options.log { Some(log::open(&mut programs)?) } else { None };
        let hooks = attach::attach(&mut programs, options.setsid)?;
        let mut source = Self {
            candidates,
            ring: RingBuf::try_from(take(&mut programs, "RECORDS")?)?,
            members: Members::new(&mut programs, room)?,
            threads: Threads::new(&mut programs)?,
            idle: Array::try_from(take(&mut programs, "READER_IDLE")?)?,
            counters: PerCpuArray::try_from(take(&mut programs, "COUNTERS")?)?,
            counted: Counters::default(),
            handed_out: 0,
            most: ring_bytes / SMALLEST,
            undecodable: 0,
            log,
            hooks,
            holders: None,
            programs: Arc::new(Mutex::new(programs)),
        };
        source.open_holders(ends, wanted, options.wanted);
        monitor_common::trim_heap();
        Ok(source)
    }

    /// Without the pass over all descriptors a look at /proc has to do: no reason not to watch.
    fn open_holders(
        &mut self,
        ends: Result<EndOffsets, LayoutError>,
        wanted: HashMap<MapData, u64, u8>,
        room: u32,
    ) {
        let loaded = ends.map_err(KernelError::from).and_then(|_| {
            let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
            holders::load(&mut programs)
        });
        let opened = loaded
            .map_err(|e| e.to_string())
            .and_then(|()| Holders::new(Arc::downgrade(&self.programs), wanted, room));
        match opened {
            Ok(holders) => {
                self.hooks.push(holders::HOOK.to_owned());
                self.holders = Some(holders);
            }
            Err(error) => tracing::warn!(
                "{}: {error}; going on without: who holds a wire is read from /proc, which does not show all",
                holders::HOOK
            ),
        }
    }

    /// What makes passes over all descriptors, where this kernel allows it: once. It works as long as the kernel side is there.
    pub fn take_holders(&mut self) -> Option<Holders> {
        self.holders.take()
    }

    /// Whose execs are reported from now on.
    pub fn set_candidates(&mut self, wanted: &[Candidate]) -> Result<(), KernelError> {
        candidates::set(&mut self.candidates, wanted)
    }

    /// Whether the maps can be used: a try that changes nothing.
    pub fn works(&mut self) -> bool {
        self.count().is_ok()
            && self.set_idle(false).is_ok()
            && self.untrack(0).is_ok()
            && self.holders.as_mut().is_none_or(|holders| holders.prove().is_ok())
    }

    /// The hooks in use.
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
    /// of it was lost, is not understood, or does not come: a record in front of it is still being written.
    pub fn catch_up(&mut self, mut f: impl FnMut(ProcessEvent)) -> Result<bool, KernelError> {
        // The programs count a record before they write it: whatever had been written is in this number.
        let now = self.count()?;
        // Whoever could not be followed has lost no record.
        if (Losses { member: 0, ..self.lost_until(&now) }) != Losses::default() {
            return Ok(false);
        }
        let kinds =
            [Counter::ForkProduced, Counter::ExecProduced, Counter::ExitProduced, Counter::SetsidProduced];
        let dropped =
            [Counter::ForkDropped, Counter::ExecDropped, Counter::ExitDropped, Counter::SetsidDropped];
        let sum = |kinds: [Counter; 4]| kinds.iter().map(|kind| now.get(*kind)).sum::<u64>();
        let wanted = sum(kinds).saturating_sub(sum(dropped));
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
        let Some(record) = self.ring.next() else { return false };
        self.handed_out += 1;
        match decode(&record) {
            Ok(event) => {
                if let ProcessEvent::Exit { process, .. } = &event {
                    self.members.ended(process.pid);
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

    /// Records that were not understood since the start: versions of the two sides that do not fit.
    pub const fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// Whether the next record of any kind wakes the reader, once. Before it sleeps for good the reader sets it and then
    /// drains once more: what came in between has not woken anybody.
    pub fn set_idle(&mut self, idle: bool) -> Result<(), KernelError> {
        Ok(self.idle.set(0, u32::from(idle), 0)?)
    }

    /// Follows a process. One that is gone is not entered, so nothing is left behind for a later process with its number. Nor is
    /// one that there is no room for.
    pub fn track(&mut self, process: ProcessId, tracking: Tracking) -> Result<Tracked, KernelError> {
        self.members.track(process, tracking)
    }

    /// Forgets a process, and what is pending below it.
    pub fn untrack(&mut self, pid: u32) -> Result<(), KernelError> {
        self.members.untrack(pid)
    }

    /// The threads whose end is reported.
    pub const fn threads(&mut self) -> &mut Threads {
        &mut self.threads
    }

    /// Whose processes the kernel side could not follow since the last call: [`Losses::member`] says how many.
    pub fn refused(&mut self) -> Result<Vec<u32>, KernelError> {
        self.members.refused()
    }

    /// Whether there is room again for those of this user.
    pub fn has_room_again(&mut self, uid: u32) -> Result<bool, KernelError> {
        self.members.has_room_again(uid)
    }

    /// How many processes are followed, those that wait for a judgement included: while nothing happens, both counts agree.
    pub fn room_in_use(&self) -> Result<RoomInUse, KernelError> {
        self.members.room_in_use()
    }

    /// What was lost since the last call. Forks below a candidate beyond its budget are no loss.
    pub fn losses(&mut self) -> Result<Losses, KernelError> {
        let now = self.count()?;
        let losses = self.lost_until(&now);
        let unfollowed = now.get(Counter::BudgetUsedUp) - self.counted.get(Counter::BudgetUsedUp);
        if unfollowed > 0 {
            tracing::debug!(unfollowed, "forks below a process that is not judged yet were not followed");
        }
        self.counted = now;
        Ok(losses)
    }

    /// What was lost since the last call of [`Self::losses`].
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

    /// Records made since the start.
    pub fn produced(&self) -> Result<Produced, KernelError> {
        let now = self.count()?;
        Ok(Produced {
            fork: now.get(Counter::ForkProduced),
            exec: now.get(Counter::ExecProduced),
            exit: now.get(Counter::ExitProduced),
            setsid: now.get(Counter::SetsidProduced),
        })
    }

    /// What went wrong in the programs since the start, by kind; "it cannot happen" included.
    pub fn errors(&self) -> Result<BTreeMap<String, u64>, KernelError> {
        let now = self.count()?;
        let kinds = [
            ("members_full", Counter::MembersFull),
            ("pending_budget", Counter::BudgetUsedUp),
            ("unreadable", Counter::Unreadable),
            ("argv_fault", Counter::ArgvFault),
            ("exe_fault", Counter::ExeFault),
            ("no_scratch", Counter::NoScratch),
            ("anchor_forgotten", Counter::AnchorForgotten),
        ];
        let mut errors: BTreeMap<String, u64> =
            kinds.into_iter().map(|(kind, counter)| (kind.to_owned(), now.get(counter))).collect();
        errors.insert("undecodable".to_owned(), self.undecodable);
        errors.insert("threads_full".to_owned(), self.threads.full());
        Ok(errors)
    }

    /// Forks that were not followed since the start: more than the budget below one process not judged yet.
    pub fn unfollowed(&self) -> Result<u64, KernelError> {
        Ok(self.count()?.get(Counter::BudgetUsedUp))
    }

    fn count(&self) -> Result<Counters, KernelError> {
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

impl AsRawFd for KernelSource {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

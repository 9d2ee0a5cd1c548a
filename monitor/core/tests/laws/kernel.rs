//! The model kernel: processes that fork, exec, exit, change session, are adopted, and whose numbers are reused.
//!
//! Deterministic: the same calls in the same order give the same identities and records. Time is a number that
//! every system call moves on a little. What the kernel side of orphand would report goes through [`Records`].
//! Whoever asks for something impossible (a dead process forks) gets nothing, as from the real kernel.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use orphand_core::model::{BootTime, ExitStatus, Ignored, Image, ProcessEvent, ProcessId, Signal};

use crate::{
    doings::Doings,
    files::{End, Files},
    programs::Program,
    records::Records,
};

/// What a system call costs in simulated time: about fifty in a clock tick, so that births share ticks.
const SYSTEM_CALL: Duration = Duration::from_micros(200);
/// The first number given out after a wrap, `RESERVED_PIDS` in kernel/pid.c.
const RESERVED: u32 = 300;
/// The moment the simulation begins.
const BEGINNING: BootTime = BootTime(100_000_000_000);

/// What a process does when asked to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTerm {
    /// It ends a moment later.
    #[default]
    Obey,
    /// It goes on.
    Ignore,
    /// It forks a child that ignores the signal, and ends.
    ForkAndExit,
    /// It forks a child and goes on, each time.
    ForkAndStay,
}

/// How a process behaves; inherited by fork, set by exec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// On SIGTERM.
    pub on_term: OnTerm,
    /// Milliseconds from the hang-up of its wire to its own exit, if it notices at all.
    pub exits_at_eof: Option<u32>,
    /// Whether it ends with its last child, as a wrapper does.
    pub waits: bool,
    /// `ORPHAND_OPT_OUT=1` in its environment.
    pub opted_out: bool,
    /// Whether it listens and somebody outside is connected.
    pub serves_clients: bool,
}

/// A process, living or dead.
#[derive(Clone, Debug)]
pub struct Process {
    pub id: ProcessId,
    /// Who called clone(2).
    pub creator: ProcessId,
    /// Who gets its SIGCHLD now.
    pub parent: ProcessId,
    pub uid: u32,
    pub sid: u32,
    pub image: Image,
    /// When it last replaced its image, if it ever did.
    pub execed: Option<BootTime>,
    pub subreaper: bool,
    pub conduct: Conduct,
    pub files: Files,
    pub doings: Doings,
    pub born: BootTime,
    pub died: Option<(BootTime, ExitStatus)>,
}

/// Something that will happen by itself.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    Exit(ProcessId, ExitStatus),
}

#[derive(Clone, Debug)]
pub struct Kernel {
    clock: BootTime,
    /// Everybody who ever lived.
    pub history: BTreeMap<ProcessId, Process>,
    live: BTreeMap<u32, ProcessId>,
    last: u32,
    space: u32,
    /// Numbers freed since the reader last drained the ring. Pid spaces are 32,768 and more and the reader is
    /// 20 ms behind at most, so a number does not come back within one batch; with a space of a hundred it would.
    fresh_dead: BTreeSet<u32>,
    pub next_inode: u64,
    /// The socket at the other end of each socket pair.
    pub peers: BTreeMap<u64, u64>,
    /// Who made each pipe and socket pair.
    pub makers: BTreeMap<u64, ProcessId>,
    /// Descriptors that were sent and not yet received.
    pub in_flight: Vec<End>,
    agenda: BTreeMap<(BootTime, u64), Plan>,
    planned: u64,
    pub records: Records,
}

impl Kernel {
    /// A host with `space` process numbers and nobody on it but pid 1.
    pub fn new(space: u32, records: Records) -> Self {
        let id = ProcessId::new(1, 1);
        let init = Process {
            id,
            creator: ProcessId::default(),
            parent: ProcessId::default(),
            uid: 0,
            sid: 1,
            image: crate::programs::INIT.image(),
            execed: Some(BEGINNING),
            subreaper: true,
            conduct: Conduct { on_term: OnTerm::Ignore, ..Conduct::default() },
            files: Files::on_null(),
            doings: Doings::default(),
            born: BootTime(10_000_000),
            died: None,
        };
        Self {
            clock: BEGINNING,
            history: BTreeMap::from([(id, init)]),
            live: BTreeMap::from([(1, id)]),
            last: RESERVED,
            space,
            fresh_dead: BTreeSet::new(),
            next_inode: 50_000,
            peers: BTreeMap::new(),
            makers: BTreeMap::new(),
            in_flight: Vec::new(),
            agenda: BTreeMap::new(),
            planned: 0,
            records,
        }
    }

    pub fn now(&self) -> BootTime {
        self.clock
    }

    /// Lets time pass; it never goes back.
    pub fn advance_to(&mut self, to: BootTime) {
        self.clock = self.clock.max(to);
    }

    pub fn alive(&self, id: ProcessId) -> bool {
        self.live.get(&id.pid) == Some(&id)
    }

    /// Who has the number now.
    pub fn holder_of_number(&self, pid: u32) -> Option<ProcessId> {
        self.live.get(&pid).copied()
    }

    pub fn living(&self) -> impl Iterator<Item = &Process> {
        self.live.values().filter_map(|id| self.history.get(id))
    }

    /// A process that lives.
    pub fn get(&self, id: ProcessId) -> Option<&Process> {
        self.history.get(&id).filter(|p| p.died.is_none())
    }

    /// A process that lives, to be changed without a record (its files, its conduct).
    pub fn get_mut(&mut self, id: ProcessId) -> Option<&mut Process> {
        self.history.get_mut(&id).filter(|p| p.died.is_none())
    }

    /// Whether `ancestor` is `id` or among its creators.
    pub fn descends(&self, id: ProcessId, ancestor: ProcessId) -> bool {
        let mut at = Some(id);
        while let Some(now) = at {
            if now == ancestor {
                return true;
            }
            at = self.history.get(&now).map(|p| p.creator);
        }
        false
    }

    /// The reader has seen everything: numbers freed so far may come back.
    pub fn drained(&mut self) {
        self.fresh_dead.clear();
    }

    /// A moment passes.
    pub fn system_call(&mut self) -> BootTime {
        self.clock = self.clock + SYSTEM_CALL;
        self.clock
    }

    /// Whether a number can be given out now. It stays taken while it names a session (`__change_pid()`), and
    /// no number is used twice in a tick: the kernel would have to go round the whole space in 10 ms.
    fn is_free(&self, pid: u32, sessions: &BTreeSet<u32>) -> bool {
        !self.live.contains_key(&pid)
            && !sessions.contains(&pid)
            && !self.fresh_dead.contains(&pid)
            && !self.history.contains_key(&ProcessId::new(pid, self.clock.ticks()))
    }

    /// How many processes can be created now.
    pub fn room(&self) -> usize {
        let sessions = self.living().map(|p| p.sid).collect();
        (RESERVED..RESERVED + self.space).filter(|pid| self.is_free(*pid, &sessions)).count()
    }

    /// The next free number, round and round, `alloc_pid()` in kernel/pid.c.
    fn number(&mut self) -> Option<u32> {
        let sessions: BTreeSet<u32> = self.living().map(|p| p.sid).collect();
        for _ in 0..self.space {
            self.last = if self.last + 1 >= RESERVED + self.space { RESERVED } else { self.last + 1 };
            if self.is_free(self.last, &sessions) {
                return Some(self.last);
            }
        }
        None
    }

    /// fork(2), vfork(2): the two differ in memory only.
    pub fn fork(&mut self, creator: ProcessId) -> Option<ProcessId> {
        self.clone_process(creator, creator)
    }

    /// clone(2) with `CLONE_PARENT`: the child's parent is the caller's parent.
    pub fn fork_sibling(&mut self, creator: ProcessId) -> Option<ProcessId> {
        let parent = self.get(creator)?.parent;
        self.clone_process(creator, parent)
    }

    fn clone_process(&mut self, creator: ProcessId, parent: ProcessId) -> Option<ProcessId> {
        let at = self.system_call();
        let template = self.get(creator)?.clone();
        let id = ProcessId::new(self.number()?, at.ticks());
        let (uid, sid) = (template.uid, template.sid);
        let doings = template.doings.of_child(at);
        let child =
            Process { id, creator, parent, execed: None, subreaper: false, doings, born: at, ..template };
        self.works(creator);
        self.history.insert(id, child);
        self.live.insert(id.pid, id);
        self.records.fork(
            ProcessEvent::Fork { at, creator, thread: None, child: id, uid, sid },
            creator.pid,
            id.pid,
        );
        Some(id)
    }

    /// execve(2) by any thread: closes what is marked so, keeps number and birth.
    pub fn exec(&mut self, id: ProcessId, program: &Program, conduct: Conduct) -> bool {
        let at = self.system_call();
        let Some(process) = self.get_mut(id) else { return false };
        process.image = program.image();
        process.execed = Some(at);
        process.conduct = conduct;
        process.files.close_on_exec();
        process.doings.exec(at);
        let (parent, uid, sid) = (process.parent, process.uid, process.sid);
        let event = ProcessEvent::Exec {
            at,
            process: id,
            parent,
            uid,
            sid,
            image: program.image(),
            stdio: process.files.standard(),
            ignored: Ignored::default(),
        };
        self.records.exec(event, program.comm, id.pid, parent.pid);
        self.look_for_hang_ups();
        true
    }

    /// setsid(2). Refused to a leader, as the kernel refuses it to the leader of a process group.
    pub fn setsid(&mut self, id: ProcessId) -> bool {
        let leaves = self.leave_session(id);
        if leaves {
            let at = self.clock;
            self.records.setsid(ProcessEvent::Setsid { at, process: id, sid: id.pid }, id.pid);
        }
        leaves
    }

    /// The same without a record, as in a kernel that does not let anybody watch it.
    pub fn leave_session(&mut self, id: ProcessId) -> bool {
        self.works(id);
        let Some(process) = self.get_mut(id).filter(|p| p.sid != id.pid) else { return false };
        process.sid = id.pid;
        true
    }

    /// The last thread ends: files close, children are adopted, the number is free. Pid 1 does not end.
    pub fn exit(&mut self, id: ProcessId, status: ExitStatus) -> bool {
        let at = self.system_call();
        if id.pid == 1 || !self.alive(id) {
            return false;
        }
        let adopter = self.adopter_of_children(id);
        let children: Vec<ProcessId> = self.living().filter(|p| p.parent == id).map(|p| p.id).collect();
        for child in children {
            if let Some(p) = self.history.get_mut(&child) {
                p.parent = adopter;
            }
        }
        let Some(process) = self.history.get_mut(&id) else { return false };
        process.died = Some((at, status));
        process.files = Files::default();
        let parent = process.parent;
        self.live.remove(&id.pid);
        self.fresh_dead.insert(id.pid);
        self.records.exit(ProcessEvent::Exit { at, process: id, status }, id.pid);
        self.part_from(id, at);
        let waits = self.get(parent).is_some_and(|p| p.conduct.waits);
        if waits && !self.living().any(|p| p.parent == parent) {
            self.plan(Duration::from_millis(2), Plan::Exit(parent, ExitStatus::Code(0)));
        }
        self.look_for_hang_ups();
        true
    }

    /// `find_new_reaper()` in kernel/exit.c: the nearest living ancestor that asked for it, else pid 1.
    fn adopter_of_children(&self, id: ProcessId) -> ProcessId {
        let mut at = self.history.get(&id).map(|p| p.parent);
        while let Some(p) = at.and_then(|id| self.get(id)) {
            if p.subreaper {
                return p.id;
            }
            at = Some(p.parent);
        }
        ProcessId::new(1, 1)
    }

    /// The process ends and an unrelated one gets its number: what a signal by number would hit.
    pub fn replace(&mut self, id: ProcessId) {
        self.exit(id, ExitStatus::Code(0));
        self.clock = self.clock + Duration::from_millis(10);
        let bystander = ProcessId::new(id.pid, self.clock.ticks());
        let Some(init) = self.get(ProcessId::new(1, 1)).cloned() else { return };
        let stranger = Process { id: bystander, creator: init.id, parent: init.id, born: self.clock, ..init };
        self.history.insert(bystander, Process { subreaper: false, conduct: Conduct::default(), ..stranger });
        self.live.insert(id.pid, bystander);
    }

    /// Delivers a signal to whoever has the number; tells who that was.
    pub fn signal(&mut self, pid: u32, signal: Signal) -> Option<ProcessId> {
        let id = self.holder_of_number(pid)?;
        let on_term = self.get(id)?.conduct.on_term;
        let soon = Duration::from_millis(1);
        match (signal, on_term) {
            (Signal::Kill, _) => self.plan(soon, Plan::Exit(id, ExitStatus::Signal(9))),
            (Signal::Term, OnTerm::Obey) => self.plan(soon * 20, Plan::Exit(id, ExitStatus::Signal(15))),
            (Signal::Term, OnTerm::Ignore) => {}
            (Signal::Term, OnTerm::ForkAndExit) => {
                if let Some(child) = self.fork(id).and_then(|c| self.get_mut(c)) {
                    child.conduct = Conduct { on_term: OnTerm::Ignore, ..Conduct::default() };
                }
                self.plan(soon * 5, Plan::Exit(id, ExitStatus::Code(0)));
            }
            (Signal::Term, OnTerm::ForkAndStay) => {
                self.fork(id);
            }
        }
        Some(id)
    }

    pub fn plan(&mut self, delay: Duration, plan: Plan) {
        self.planned += 1;
        self.agenda.insert((self.clock + delay, self.planned), plan);
    }

    /// When the next thing happens by itself.
    pub fn next_plan(&self) -> Option<BootTime> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }

    /// Carries out what is due.
    pub fn run_plans(&mut self) {
        while let Some(entry) = self.agenda.first_entry().filter(|e| e.key().0 <= self.clock) {
            let Plan::Exit(id, status) = entry.remove();
            self.exit(id, status);
        }
    }
}

//! What is no pipe and no socket, and can be used by several processes all the same: open files that are inherited or handed
//! on (eventfd(2) ..), the lines of terminals, files that are mapped, and message queues. Only a pass of the kernel tells who has them.

use std::collections::{HashMap, HashSet};

use super::{
    process::Member,
    rows::{Key, Rows},
};
use crate::source::kernel_side::{Beside, OpenEnd};
use orphand_core::model::{
    ProcessId, Stdio,
    scene::{Address, Called, Endpoint, Side},
};

/// What a pass is asked for.
pub(super) fn wanted(members: &[Member]) -> Beside {
    let files = |member: &Member| {
        let pid = member.process.pid;
        member.ends.counters.iter().map(|number| (pid, *number)).collect::<Vec<_>>()
    };
    let streams = |nameless| {
        let all = members.iter().flat_map(|member| &member.ends.streams);
        all.filter(move |stream| stream.nameless == nameless).map(|stream| stream.inode)
    };
    let named: HashSet<u64> = streams(false).collect();
    let memory = members.iter().flat_map(|member| &member.places.memory);
    Beside {
        mapped: memory.filter(|memory| !memory.is_named).map(|memory| memory.file).collect(),
        files: members.iter().flat_map(files).collect(),
        lines: members.iter().flat_map(|member| member.ends.terminals.iter().copied()).collect(),
        nameless: streams(true).filter(|inode| !named.contains(inode)).collect(),
    }
}

/// The lines of the terminals that the processes which were asked about have opened, by number. Each devpts has numbers of its
/// own, and every container and every user may have one.
#[derive(Default)]
pub(super) struct Lines(HashMap<u32, HashSet<u64>>);

impl Lines {
    fn of(rows: &Rows<'_>, ends: &[OpenEnd]) -> Self {
        let mut lines: HashMap<u32, HashSet<u64>> = HashMap::new();
        for end in ends.iter().filter(|end| end.is_master && rows.is_full(end.process)) {
            lines.entry(end.device).or_default().insert(end.line);
        }
        Self(lines)
    }

    /// Whether this line with this number may be one of these.
    pub(super) fn may_have(&self, number: u32, line: u64) -> bool {
        let has = |lines: &HashSet<u64>| lines.contains(&line) || lines.contains(&0);
        line == 0 || self.0.get(&number).is_none_or(has)
    }
}

/// Enters them. Returns the lines of the terminals.
pub(super) fn enter(rows: &mut Rows<'_>, members: &[Member], ends: &[OpenEnd]) -> Lines {
    let lines = Lines::of(rows, ends);
    let mut by_file: HashMap<u64, HashSet<ProcessId>> = HashMap::new();
    for end in ends.iter().filter(|end| end.of == Stdio::Other) {
        by_file.entry(end.file).or_default().insert(end.process);
    }
    let has_another = |end: &OpenEnd| by_file.get(&end.file).is_some_and(|all| all.len() > 1);
    for end in ends.iter().filter(|end| end.of != Stdio::Other || has_another(end)) {
        match end.of {
            // Each of them can use it from either side.
            Stdio::Other => {
                let at = rows.endpoint(Key::Shared(end.file), || Endpoint::Shared);
                rows.hold_open(at, Side::Near, end, false);
                rows.hold_open(at, Side::Far, end, false);
            }
            // Whoever has it open may map it for each call.
            Stdio::File => {
                let key = Key::Memory(end.device, end.inode);
                let at = rows.endpoint(key, || Endpoint::Memory { inode: end.inode });
                rows.hold_open(at, Side::Writes, end, false);
            }
            Stdio::Terminal if !end.is_master && lines.may_have(end.device, end.line) => {
                let at = rows.endpoint(Key::Terminal(end.device), || Endpoint::Terminal);
                rows.hold_open(at, Side::Depends, end, false);
            }
            _ => {}
        }
    }
    for member in members {
        let unknown = (Address::Other, Called::Unknown);
        let queues = member.ends.queues.iter().map(|inode| (*inode, Key::Open(*inode), unknown));
        let waits_at = member.places.queues.iter().map(|number| (0, Key::SystemV(*number), unknown));
        let anybody = member.places.anybody;
        let anybody = anybody.map(|called| (0, Key::Waiting(member.process), (Address::File, called)));
        for (inode, key, (by, called)) in queues.chain(waits_at).chain(anybody) {
            let open = Endpoint::Open { inode, by, called, chosen: false };
            let at = rows.endpoint(key, || open);
            rows.hold(at, Side::Listens, member.process);
        }
    }
    lines
}

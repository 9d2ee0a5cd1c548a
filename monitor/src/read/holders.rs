//! Who has the ends: a pass of the kernel over all descriptors of the host tells, and misses nobody. It also tells how
//! many ends a pipe has and how often a file is open, so that an end in flight in a socket, or in an `io_uring`, shows
//! as a count that is higher than the number of descriptors.
//!
//! Without passes, /proc lists the descriptors. It shows neither what is in flight nor what is kept without a
//! descriptor, so anybody may have the other end of a wire too, unless poll(2) tells that nobody does.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    mem,
    thread::sleep,
    time::Duration,
};

use super::{
    descriptors::{MOST, Stream},
    joints::Joints,
    pipe::{self, Said, has},
    process::Member,
    rows::{Key, Rows},
    shared::{self, Lines},
};
use crate::source::kernel_side::{Beside, KernelSide, OpenEnd};
use orphand_core::model::{
    ProcessId, Stdio,
    scene::{Address, Called, Endpoint, Side},
};

/// The wait before a second pass. A reference without a descriptor may be a write(2) in progress in a process with
/// threads, which is over by then.
const SECOND_LOOK: Duration = Duration::from_millis(1);

pub(super) fn enter(
    kernel: &KernelSide,
    rows: &mut Rows<'_>,
    members: &[Member],
    joints: &mut Joints,
) -> Lines {
    let pipes: BTreeSet<u64> = members
        .iter()
        .flat_map(|member| member.ends.streams.iter().map(|stream| stream.inode))
        .chain(joints.wires().filter_map(Stdio::try_as_pipe))
        .collect();
    let sockets: BTreeSet<u64> = joints.joined().chain(joints.sockets()).collect();
    let wanted: Vec<Stdio> =
        pipes.iter().copied().map(Stdio::Pipe).chain(sockets.into_iter().map(Stdio::Socket)).collect();
    let beside = shared::wanted(members);
    if wanted.is_empty() && beside == Beside::default() {
        return shared::enter(rows, members, &[]);
    }
    let told = told(kernel, rows, &wanted, &beside);
    let is_complete = told.is_ok();
    let all = told.unwrap_or_else(|why| {
        if kernel.holders.is_some() {
            // It tells what /proc does not; somebody may have made it fail.
            rows.unread(None, format!("no pass over the open files: {why}"));
        }
        listed(rows, &wanted)
    });
    let lines = shared::enter(rows, members, &all);
    let ends = Ends::new(&all, members, is_complete);
    for inode in pipes {
        ends.enter_pipe(rows, joints, inode);
    }
    // The ports that programs chose, as a VPN or a mesh network chooses one, are not those that the system gave out to
    // who only sends. Without passes that is not known.
    for socket in mem::take(&mut joints.perhaps_open) {
        if !is_complete || ends.of_socket(socket).iter().any(|end| end.has_chosen_port) {
            joints.open(rows, socket, Address::Udp, Called::Unknown);
        }
    }
    tell_own_tables(rows, &all);
    ends.join_lost_wires(rows, joints);
    for (socket, at) in mem::take(&mut joints.without_peer) {
        let peer = ends.of_socket(socket).iter().find_map(|end| end.peer).filter(|peer| *peer != 0);
        match peer {
            Some(peer) => joints.join(peer, at, Side::Far),
            None if joints.is_wire(Stdio::Socket(socket)) => rows.unreadable(at, Side::Far),
            None => rows.anybody(at, Side::Far),
        }
    }
    for socket in joints.joined().collect::<BTreeSet<_>>() {
        ends.enter_socket(rows, joints, socket);
    }
    lines
}

/// Enters the processes of which a thread has a descriptor table of its own: /proc/PID/fd does not show what that has, a
/// listener for example.
fn tell_own_tables(rows: &mut Rows<'_>, ends: &[OpenEnd]) {
    let mut tables: BTreeMap<ProcessId, u64> = BTreeMap::new();
    let mut several = BTreeSet::new();
    for end in ends.iter().filter(|end| end.table != 0 && rows.is_full(end.process)) {
        if *tables.entry(end.process).or_insert(end.table) != end.table {
            several.insert(end.process);
        }
    }
    for process in several {
        rows.unread(Some(process), "a thread of it has open files of its own");
    }
}

/// What a pass tells. A second one is made if there are references that no descriptor accounts for, beside those of the
/// processes that were asked about, which mostly wait in a read(2).
fn told(
    kernel: &KernelSide,
    rows: &Rows<'_>,
    wanted: &[Stdio],
    beside: &Beside,
) -> Result<Vec<OpenEnd>, String> {
    let ends = kernel.pass(wanted, beside)?;
    let beyond = Beyond::of(&ends);
    let is_open =
        |end: &OpenEnd| end.of.is_wire() && beyond.files.contains(&end.file) && !rows.is_full(end.process);
    if !ends.iter().any(is_open) && beyond.pipes.is_empty() {
        return Ok(ends);
    }
    sleep(SECOND_LOOK);
    kernel.pass(wanted, beside)
}

struct Beyond {
    /// Open files with more references than descriptors.
    files: HashSet<u64>,
    /// The ends of pipes, by inode number and device, of which more are open than the descriptors show.
    pipes: BTreeSet<(u64, u32, Side)>,
}

impl Beyond {
    fn of(ends: &[OpenEnd]) -> Self {
        let (mut files, mut pipes) = (HashMap::<u64, (u64, u64)>::new(), BTreeMap::new());
        for end in ends {
            let (references, descriptors) = files.entry(end.file).or_default();
            *references = end.references.max(*references);
            *descriptors += 1;
            if let Stdio::Pipe(inode) = end.of {
                for (side, has, open) in [
                    (Side::Reads, end.access.read, end.readers),
                    (Side::Writes, end.access.write, end.writers),
                ] {
                    let (files, most): &mut (HashSet<u64>, u32) =
                        pipes.entry((inode, end.device, side)).or_default();
                    *most = open.max(*most);
                    files.extend(has.then_some(end.file));
                }
            }
        }
        let more =
            |(files, most): &(HashSet<u64>, u32)| files.len() < usize::try_from(*most).unwrap_or(usize::MAX);
        Self {
            files: files
                .into_iter()
                .filter(|(_, (all, listed))| all > listed)
                .map(|(file, _)| file)
                .collect(),
            pipes: pipes.into_iter().filter(|(_, counts)| more(counts)).map(|(pipe, _)| pipe).collect(),
        }
    }
}

/// Who has what is looked for.
struct Ends<'a> {
    by_file: BTreeMap<Stdio, Vec<&'a OpenEnd>>,
    /// What the processes that were asked about had before, by inode number.
    streams: HashMap<u64, Vec<(ProcessId, Stream)>>,
    beyond: Beyond,
    /// Whether a pass told, which misses nobody.
    is_complete: bool,
}

impl<'a> Ends<'a> {
    fn new(all: &'a [OpenEnd], members: &[Member], is_complete: bool) -> Self {
        let mut by_file: BTreeMap<Stdio, Vec<&OpenEnd>> = BTreeMap::new();
        for end in all {
            by_file.entry(end.of).or_default().push(end);
        }
        // The oldest holders are described: a process that is older than a server may own it.
        for ends in by_file.values_mut() {
            ends.sort_unstable_by_key(|end| (end.process.start, end.process.pid, end.number));
        }
        let mut streams: HashMap<u64, Vec<(ProcessId, Stream)>> = HashMap::new();
        for member in members {
            for stream in &member.ends.streams {
                streams.entry(stream.inode).or_default().push((member.process, *stream));
            }
        }
        Self { by_file, streams, beyond: Beyond::of(all), is_complete }
    }

    fn of(&self, file: Stdio) -> &[&'a OpenEnd] {
        self.by_file.get(&file).map_or(&[], Vec::as_slice)
    }

    fn of_socket(&self, socket: u64) -> &[&'a OpenEnd] {
        self.of(Stdio::Socket(socket))
    }

    fn streams(&self, pipe: u64) -> &[(ProcessId, Stream)] {
        self.streams.get(&pipe).map_or(&[], Vec::as_slice)
    }

    /// Whether the pipe is a FIFO, which has a path.
    fn is_named(&self, pipe: u64) -> bool {
        self.streams(pipe).iter().any(|(_, stream)| stream.named)
    }

    fn enter_pipe(&self, rows: &mut Rows<'_>, joints: &Joints, inode: u64) {
        let (ends, named) = (self.of(Stdio::Pipe(inode)), self.is_named(inode));
        // The same inode number on another device is another file.
        let all: BTreeSet<u32> = ends.iter().map(|end| end.device).collect();
        let of_members = ends.iter().filter(|end| rows.is_full(end.process));
        let ours: BTreeSet<u32> = of_members.map(|end| end.device).collect();
        let devices = if ours.is_empty() { all } else { ours };
        for device in devices.iter().copied().chain(devices.is_empty().then_some(0)) {
            let at = rows.endpoint(Key::Pipe(inode, device), || Endpoint::Pipe { inode, named });
            let here: Vec<&OpenEnd> = ends.iter().copied().filter(|end| end.device == device).collect();
            let ours = |side| here.iter().any(|end| rows.is_full(end.process) && has(end.access, side));
            let ours = [Side::Reads, Side::Writes].map(|side| (side, ours(side)));
            for (side, is_ours) in ours {
                let is_opposed = ours.iter().any(|(other, is_ours)| *other != side && *is_ours);
                let is_shared = is_ours && !is_opposed && !joints.is_wire(Stdio::Pipe(inode));
                for end in here.iter().filter(|end| has(end.access, side)) {
                    // Hundreds of servers share the standard error of their agent: nobody can use a server through an end
                    // that both have.
                    if is_shared && !rows.is_full(end.process) && !rows.may_be_child(end.process) {
                        continue;
                    }
                    rows.hold_open(at, side, end, self.beyond.files.contains(&end.file));
                }
                self.enter_unseen((rows, joints), inode, at, (device, side));
            }
        }
    }

    /// Enters who may have this side of a pipe without a descriptor that is seen.
    fn enter_unseen(
        &self,
        (rows, joints): (&mut Rows<'_>, &Joints),
        inode: u64,
        at: u32,
        (device, side): (u32, Side),
    ) {
        let wire = Stdio::Pipe(inode);
        let is_ours = |end: &&OpenEnd| {
            let is_member = rows.is_full(end.process) && !joints.is_of_another(end.process, wire);
            end.device == device && has(end.access, side) && is_member
        };
        let is_lost = joints.is_own(wire, side) && !self.of(wire).iter().any(is_ours);
        if self.beyond.pipes.contains(&(inode, device, side)) {
            // The server itself may have its end without a descriptor.
            if is_lost { rows.unreadable(at, side) } else { rows.anybody(at, side) }
        }
        // It had the end a moment ago; or it may have it where /proc/PID/fd does not show it: a thread may have a table of
        // its own (unshare(2)), and an `io_uring` may keep a file.
        let had_it = || self.streams(inode).iter().any(|(_, stream)| has(stream.access, side));
        if is_lost && (had_it() || !self.is_complete) {
            rows.unreadable(at, side);
        }
        let is_told = joints.is_wire(wire) || self.is_named(inode);
        if !self.is_complete && is_told && self.is_open(rows, inode, side) {
            rows.anybody(at, side);
        }
    }

    /// Whether this side of the pipe is open anywhere, as poll(2) on the other side tells: without passes, who has it is
    /// not known for certain.
    fn is_open(&self, rows: &Rows<'_>, pipe: u64, side: Side) -> bool {
        let other = if side == Side::Writes { Side::Reads } else { Side::Writes };
        let mut is_open = false;
        for (process, stream) in self.streams(pipe).iter().filter(|(_, stream)| has(stream.access, other)) {
            let Ok(Some(dir)) = rows.proc.identified(*process) else { continue };
            match pipe::ask(&dir, stream.number, pipe, other) {
                Ok(Some(Said::HungUp | Said::Waits)) => return false,
                Ok(Some(Said::Held)) | Err(_) => is_open = true,
                Ok(None) => {}
            }
        }
        is_open
    }

    /// Joins sockets that are wires and that no table tells. One that nobody has any more is closed.
    fn join_lost_wires(&self, rows: &mut Rows<'_>, joints: &mut Joints) {
        for near in joints.wires().filter_map(Stdio::try_as_socket).collect::<Vec<_>>() {
            let is_open = !self.of_socket(near).is_empty() || !joints.holders(near).is_empty();
            if joints.ends(near).is_empty() && (is_open || !self.is_complete) {
                joints.half(rows, near);
            }
        }
    }

    fn enter_socket(&self, rows: &mut Rows<'_>, joints: &Joints, socket: u64) {
        let (ends, rings) = (self.of_socket(socket), joints.rings(socket));
        for (at, side) in joints.ends(socket).iter().copied() {
            if side == Side::Listens && ends.iter().any(|end| end.has_chosen_port) {
                rows.choose(at);
            }
            for end in ends {
                // Who has it cannot be told any more, and counts.
                if !rows.has_room() {
                    rows.unreadable(at, side);
                    break;
                }
                rows.hold_open(at, side, end, self.beyond.files.contains(&end.file));
            }
            for process in rings.iter().copied() {
                rows.hold(at, side, process);
            }
            let is_own = side == Side::Near && joints.is_wire(Stdio::Socket(socket));
            if ends.is_empty() && rings.is_empty() && side != Side::Listens {
                if is_own { rows.unreadable(at, side) } else { rows.anybody(at, side) }
            } else if !self.is_complete && side == Side::Far && joints.is_wire_of(at) {
                rows.anybody(at, side);
            }
        }
    }
}

/// The same from /proc, as far as it can be read, and not more than fits.
fn listed(rows: &mut Rows<'_>, wanted: &[Stdio]) -> Vec<OpenEnd> {
    let wanted: HashSet<Stdio> = wanted.iter().copied().collect();
    let pids = rows.proc.pids().unwrap_or_else(|error| {
        rows.unread(None, error.to_string());
        Vec::new()
    });
    let mut found = Vec::new();
    for pid in pids {
        if found.len() > MOST {
            break;
        }
        let Ok(dir) = rows.proc.process(pid) else { continue };
        let Ok(table) = dir.fd_table() else { continue };
        let wires = table.fds.iter().filter_map(|fd| Some((fd.number, fd.target.wire()?)));
        let ends: Vec<_> = wires.filter(|(_, wire)| wanted.contains(wire)).collect();
        if ends.is_empty() {
            continue;
        }
        let Ok(fds) = dir.fd_dir() else { continue };
        for (number, of) in ends {
            let Some(access) = fds.access(number) else { continue };
            let (process, file) = (dir.id(), found.len() as u64);
            found.push(OpenEnd { process, number, of, access, file, references: 1, ..OpenEnd::default() });
        }
    }
    found
}

//! What belongs to a server in truth: its launch chain, and what is tied to it.
//!
//! Tied is who has the server's own ends on a standard stream or as its wire, who is joined there with one of the server's, whose
//! stream one of them made, and who shares the session of a link of the chain that lives, or lived when its end began, and has its
//! output.

use std::collections::BTreeSet;

use orphand_core::model::{ProcessId, Stdio};

use crate::{
    files::End,
    kernel::{Kernel, Process},
    truth::{Service, Truth},
};

impl Kernel {
    /// Whether one holds the other end of what another has on a standard stream.
    pub fn are_joined(&self, one: &Process, other: &Process) -> bool {
        let mut streams = one.files.streams();
        streams.any(|end| self.opposite(end).is_some_and(|opposite| other.files.has(opposite)))
    }

    /// Who made the pipe or the socket pair of an end.
    fn maker(&self, end: End) -> Option<ProcessId> {
        let (End::Read(n) | End::Write(n) | End::Socket(n)) = end else { return None };
        self.makers.get(&n).copied()
    }
}

impl Truth {
    /// The processes of a server that live, those that it has let go not included.
    pub fn parts<'k>(&self, kernel: &'k Kernel, service: &Service) -> Vec<&'k Process> {
        let all = self.members(kernel, service);
        let begun = self.ending.get(&service.head());
        let has_wire = |p: &Process| service.wires.iter().any(|wire| p.files.has(*wire));
        let in_chain = |p: &Process| service.chain.contains(&p.id) || service.behind.contains(&p.id);
        let core: Vec<&Process> = all.iter().copied().filter(|p| in_chain(p) || has_wire(p)).collect();
        // What writes nowhere, where its creator writes to a stream, works for nobody who waits for it; unless it asks the server.
        let is_mute = |p: &Process| p.files.standard()[1] == Stdio::Null;
        let asks = |p: &Process| {
            let mut ends = service.wires.iter().filter_map(|wire| kernel.opposite(*wire));
            ends.any(|end| matches!(end, End::Socket(_)) && p.files.has(end))
        };
        let works_apart = |p: &Process| {
            is_mute(p) && !asks(p) && kernel.history.get(&p.creator).is_some_and(|c| !is_mute(c))
        };
        let mut sessions: BTreeSet<u32> = core.iter().map(|p| p.sid).collect();
        sessions.extend(begun.into_iter().flatten());
        let mut parts: Vec<&Process> = core;
        loop {
            let ids: BTreeSet<ProcessId> =
                parts.iter().map(|p| p.id).chain(service.chain.iter().copied()).collect();
            let is_tied = |p: &Process| {
                let made = |end: End| kernel.maker(end).is_some_and(|maker| ids.contains(&maker));
                (sessions.contains(&p.sid) && !works_apart(p))
                    || p.files.streams().any(|end| made(end) && !service.wires.contains(&end))
                    || parts.iter().any(|part| kernel.are_joined(p, part))
            };
            let more: Vec<&Process> =
                all.iter().copied().filter(|p| !ids.contains(&p.id) && is_tied(p)).collect();
            if more.is_empty() {
                return parts;
            }
            parts.extend(more);
        }
    }

    /// The first signal of an end: what shares a session with the chain now goes with it.
    pub fn begins_to_end(&mut self, kernel: &Kernel, hit: ProcessId) {
        let services: Vec<&Service> =
            self.services.iter().filter(|s| self.is_member(kernel, hit, s.head())).collect();
        let sessions: Vec<(ProcessId, BTreeSet<u32>)> = services
            .into_iter()
            .filter(|s| !self.ending.contains_key(&s.head()))
            .map(|s| {
                let parts = self.parts(kernel, s);
                let core = parts.iter().filter(|p| s.chain.contains(&p.id) || s.behind.contains(&p.id));
                (s.head(), core.map(|p| p.sid).collect())
            })
            .collect();
        self.ending.extend(sessions);
    }
}

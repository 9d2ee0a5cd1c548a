//! What model processes do beside fork, exec and exit: work, listen, be connected, trace, hand descriptors on.
//!
//! None of it makes a record; a look at the host shows it. Every deed costs processor time, so that who did nothing shows, too.

use std::{collections::BTreeSet, time::Duration};

use orphand_core::model::{BootTime, ProcessId, Work};

use crate::{
    files::End,
    kernel::{Kernel, Process},
};

/// How long after its end a connection still counts.
const A_MOMENT: Duration = Duration::from_secs(60);

/// What a process has to do with others.
#[derive(Clone, Debug, Default)]
pub struct Doings {
    /// How much it has done, and when last.
    pub deeds: u64,
    pub busy: BootTime,
    /// Whether it listens on a socket.
    pub listens: bool,
    /// Who is connected to it.
    pub clients: BTreeSet<ProcessId>,
    /// When a client was connected last.
    pub served: Option<BootTime>,
    /// Who traces it.
    pub tracer: Option<ProcessId>,
}

impl Doings {
    /// Those of a child: it has inherited the sockets, and has done nothing yet.
    pub fn of_child(&self, now: BootTime) -> Self {
        Self { deeds: 1, busy: now, tracer: None, ..self.clone() }
    }

    /// Another program: sockets are closed on exec.
    pub fn exec(&mut self, now: BootTime) {
        self.deeds += 1;
        self.busy = now;
        self.listens = false;
        if !std::mem::take(&mut self.clients).is_empty() {
            self.served = Some(now);
        }
    }

    /// What the process that has these has done.
    pub fn work(&self, process: ProcessId) -> Work {
        let (cpu_ns, read_bytes) = (self.deeds * 1000, self.deeds);
        Work { process, cpu_ns, read_bytes, ..Work::default() }
    }
}

impl Process {
    /// Whether somebody is connected to it, or was a moment ago.
    pub fn is_served_to(&self, now: BootTime) -> bool {
        let moment = self.doings.served.is_some_and(|at| now.since(at) < A_MOMENT);
        self.conduct.serves_clients || moment || !self.doings.clients.is_empty()
    }

    /// Whether it listens or has connections.
    pub fn has_sockets(&self) -> bool {
        self.conduct.serves_clients || self.doings.listens || !self.doings.clients.is_empty()
    }
}

impl Kernel {
    /// It computes something.
    pub fn works(&mut self, id: ProcessId) {
        let now = self.system_call();
        if let Some(p) = self.get_mut(id) {
            p.doings.deeds += 1;
            p.doings.busy = now;
        }
    }

    pub fn connect(&mut self, server: ProcessId, client: ProcessId) {
        self.works(server);
        if let Some(p) = self.get_mut(server).filter(|p| p.id != client) {
            p.doings.listens = true;
            p.doings.clients.insert(client);
        }
    }

    /// `tracer` attaches to a process.
    pub fn trace(&mut self, id: ProcessId, tracer: ProcessId) {
        if let Some(p) = self.get_mut(id).filter(|p| p.id != tracer && p.doings.tracer.is_none()) {
            p.doings.tracer = Some(tracer);
        }
    }

    /// A process has ended: its connections are closed, whom it traced is free.
    pub fn part_from(&mut self, id: ProcessId, now: BootTime) {
        for p in self.history.values_mut().filter(|p| p.died.is_none()) {
            if p.doings.clients.remove(&id) {
                p.doings.served = Some(now);
            }
            p.doings.tracer = p.doings.tracer.filter(|tracer| *tracer != id);
        }
    }

    /// Another process gets a duplicate of an open end: it was sent through a socket, or taken with `pidfd_getfd(2)`.
    pub fn pass(&mut self, end: End, to: ProcessId) -> bool {
        let open = self.is_open(end);
        self.works(to);
        match self.get_mut(to).filter(|_| open) {
            Some(p) => p.files.open_anywhere(end, true),
            None => return false,
        }
        true
    }

    /// A duplicate of an open end is sent, and not received yet.
    pub fn send(&mut self, end: End) {
        if self.is_open(end) {
            self.in_flight.push(end);
        }
    }

    /// What was sent first is received, or lost with the socket it was in.
    pub fn receive(&mut self, to: Option<ProcessId>) -> Option<End> {
        let end = (!self.in_flight.is_empty()).then(|| self.in_flight.remove(0))?;
        if let Some(p) = to.and_then(|to| self.get_mut(to)) {
            p.files.open_anywhere(end, true);
        }
        self.look_for_hang_ups();
        Some(end)
    }
}

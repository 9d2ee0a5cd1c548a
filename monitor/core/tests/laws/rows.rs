//! The scene that the model host shows: the raw rows, from its open files and doings.

use std::collections::{BTreeMap, BTreeSet};

use orphand_core::model::{
    ProcessId, Stdio,
    scene::{
        Address, Began, Called, End as Row, Endpoint, Holder, ProcessRow, Scene, SceneQuestion, Side, Unread,
        Wait,
    },
};

use crate::{
    answers::rss,
    files::End,
    host::Host,
    kernel::{Kernel, Process},
};

/// A scene that is being filled.
struct Filling<'a> {
    kernel: &'a Kernel,
    /// The wires of which further processes may have an end that nobody sees: those of the servers, without passes.
    unsure: BTreeSet<Stdio>,
    scene: Scene,
    full: BTreeSet<ProcessId>,
    brief: BTreeSet<ProcessId>,
    known: BTreeMap<(bool, u64), u32>,
}

impl Host {
    /// The rows that answer a question.
    pub fn scene(&self, question: &SceneQuestion) -> Scene {
        let kernel = &self.kernel;
        let asked = question.servers.iter().flat_map(|server| &server.processes).chain(&question.copies);
        let full: BTreeSet<ProcessId> = asked.copied().filter(|process| kernel.alive(*process)).collect();
        let wires = question.servers.iter().filter(|_| self.manners.passless);
        let wires = wires.flat_map(|server| [server.stdin, server.stdout]);
        let (unsure, brief) = (wires.collect(), full.clone());
        let mut filling =
            Filling { kernel, unsure, scene: Scene::default(), full, brief, known: BTreeMap::new() };
        for process in filling.full.clone() {
            filling.add_full(process, question.copies.contains(&process));
        }
        for server in &question.servers {
            filling.add_stream(server.stdin);
            filling.add_stream(server.stdout);
        }
        if self.manners.blind {
            filling.scene.unread.push(Unread { process: None, why: "cannot read /proc".to_owned() });
        }
        filling.scene
    }
}

impl Filling<'_> {
    fn add_full(&mut self, process: ProcessId, is_copy: bool) {
        let Some(p) = self.kernel.get(process) else { return };
        let row = ProcessRow {
            stdio: p.files.standard(),
            waits: if is_copy { Wait::Ends } else { Wait::Anything },
            work: Some(p.doings.work(p.id)),
            opted_out: p.conduct.opted_out,
            awaits_child: p.conduct.waits,
            full: true,
            rss_bytes: rss(p.id),
            pss_bytes: Some(rss(p.id) / 2),
            ..row(p)
        };
        self.scene.processes.push(row);
        for end in p.files.ends().collect::<Vec<_>>() {
            self.add_stream(end.stdio());
        }
        self.add_sockets(p);
        self.above(p);
    }

    fn endpoint(&mut self, endpoint: Endpoint) -> u32 {
        self.scene.endpoints.push(endpoint);
        u32::try_from(self.scene.endpoints.len() - 1).unwrap_or_default()
    }

    fn end(&mut self, endpoint: u32, holder: Holder, side: Side, numbers: Vec<u32>) {
        if let Holder::Process(process) = holder
            && self.brief.insert(process)
            && let Some(p) = self.kernel.get(process)
        {
            self.scene.processes.push(row(p));
            self.above(p);
        }
        self.scene.ends.push(Row { endpoint, holder, side, numbers, beyond: false });
    }

    /// The processes above one up to one that was asked about, if there is one.
    fn above(&mut self, p: &Process) {
        let mut way = Vec::new();
        let mut at = self.kernel.get(p.parent);
        while let Some(above) = at {
            if self.full.contains(&above.id) {
                for one in way {
                    if self.brief.insert(one) {
                        self.scene.processes.extend(self.kernel.get(one).map(row));
                    }
                }
                return;
            }
            way.push(above.id);
            at = self.kernel.get(above.parent);
        }
    }

    /// A pipe or a pair of sockets, with all that hold an end of it.
    fn add_stream(&mut self, stream: Stdio) {
        let (is, sides) = match stream {
            Stdio::Pipe(n) if !self.known.contains_key(&(true, n)) => {
                self.known.insert((true, n), 0);
                let ends = [(End::Read(n), Side::Reads), (End::Write(n), Side::Writes)];
                (Endpoint::Pipe { inode: n, named: false }, ends)
            }
            Stdio::Socket(near) if !self.known.contains_key(&(false, near)) => {
                let far = self.kernel.peers.get(&near).copied().unwrap_or_default();
                self.known.extend([((false, near), 0), ((false, far), 0)]);
                let ends = [(End::Socket(near), Side::Near), (End::Socket(far), Side::Far)];
                (Endpoint::Connection { near, far, began: Began::Pair }, ends)
            }
            _ => return,
        };
        let at = self.endpoint(is);
        let is_unsure = sides.iter().any(|(end, _)| self.unsure.contains(&end.stdio()));
        for (end, side) in sides {
            let holders: Vec<(ProcessId, Vec<u32>)> =
                self.kernel.holders(end).map(|p| (p.id, p.files.numbers(end))).collect();
            let is_open = self.kernel.is_open(end);
            for (process, numbers) in holders {
                self.end(at, Holder::Process(process), side, numbers);
            }
            // Without passes nobody knows whether those that are seen are all who have a wire.
            if self.kernel.in_flight.contains(&end) || (is_unsure && is_open) {
                self.end(at, Holder::Anybody, side, Vec::new());
            }
        }
    }

    fn add_sockets(&mut self, p: &Process) {
        let own = Holder::Process(p.id);
        if p.conduct.serves_clients || p.doings.listens {
            let at = self.endpoint(Endpoint::Open {
                inode: 0,
                by: Address::Tcp,
                called: Called::No,
                chosen: false,
            });
            self.end(at, own, Side::Listens, vec![20]);
        }
        let clients = p.doings.clients.iter().filter(|client| **client != p.id);
        let mut clients: Vec<Holder> = clients.map(|client| Holder::Process(*client)).collect();
        let connected = clients.len();
        // Of one that is gone, or that is not on this host.
        if p.conduct.serves_clients
            || (p.is_served_to(self.kernel.now()) && connected == 0)
            || p.doings.served.is_some_and(|_| p.is_served_to(self.kernel.now()))
        {
            clients.push(Holder::Anybody);
        }
        for client in clients {
            let at = self.endpoint(Endpoint::Connection { near: 0, far: 0, began: Began::Far });
            self.end(at, own, Side::Near, vec![21]);
            self.end(at, client, Side::Far, vec![22]);
        }
        if let Some(tracer) = p.doings.tracer {
            let at = self.endpoint(Endpoint::Trace);
            self.end(at, own, Side::Depends, Vec::new());
            self.end(at, Holder::Process(tracer), Side::Serves, Vec::new());
        }
    }
}

/// A process in brief.
fn row(p: &Process) -> ProcessRow {
    ProcessRow {
        process: p.id,
        uid: p.uid,
        sid: p.sid,
        parent: (p.parent.pid != 0).then_some(p.parent),
        image: p.image.clone(),
        unit: crate::answers::own_unit(p),
        ..ProcessRow::default()
    }
}

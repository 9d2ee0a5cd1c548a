//! Units: the main processes of units that rules name, and the runs of all units.

use std::collections::{BTreeMap, BTreeSet};

use super::{Engine, servers::Recognised};
use crate::{
    lineage::{AgentKey, Node, ObservedUnit, ServerKey},
    model::{
        About, Answer, BootTime, Effect, Fact, Placement, ProcessId, SHOWN, Snapshot, Tracked, TrackedOwner,
        TrackedStart, Tracking, Unit, UnitFacts,
    },
    recognise::Role,
    world::{Agent, TopMost},
};

impl Engine {
    /// Asks what a process runs and which unit it runs in, which is asked once, and goes on then. One that has exited stays
    /// without a program and a unit.
    pub(super) fn ask_process(
        &mut self,
        id: ProcessId,
        then: impl FnOnce(&mut Self, BootTime) + Send + 'static,
    ) {
        self.ask(None, About::Process(id), move |engine, now, answer| {
            let seen = if let Answer::Process { process } = answer { process } else { None };
            let mut seen = seen.filter(|seen| seen.id == id);
            if let Some(seen) = &mut seen {
                engine.recall.look_behind_title(seen);
            }
            let gone = seen.is_none();
            let seen = seen.unwrap_or_default();
            let is_new = engine.world.identify(&engine.rules, id, &seen.image, Some(seen.stdio));
            engine.world.change(id, |node| {
                if node.unit == ObservedUnit::Unasked {
                    let unit = seen.unit.map(Box::new);
                    node.unit = if gone { ObservedUnit::Gone } else { ObservedUnit::Known(unit) };
                    (node.place, node.hints) = (seen.place.map(Into::into), seen.hints);
                    node.slices = Some(seen.slices.into());
                }
                if is_new {
                    (node.uid, node.sid) = (seen.uid, seen.sid);
                }
            });
            then(engine, now);
        });
    }

    /// Finds the run of an agent that exited before its unit could be asked for. A server that it left runs in the
    /// same invocation of the same unit, and that identifies the run. Returns false if the unit of the server has to
    /// be asked for first.
    ///
    /// If the agent and its ancestor agents were withheld, they are reported from here on.
    pub(super) fn resolve_account(&mut self, at: BootTime, owner: AgentKey, server: &Recognised) -> bool {
        let top = self.withheld_from(owner).first().copied().unwrap_or(owner);
        let is_unsettled = self.world.agent(top).is_some_and(|agent| agent.unsettled);
        let node = self.world.node(server.new.main).filter(|_| is_unsettled);
        match node.map(|node| node.unit.clone()) {
            Some(ObservedUnit::Unasked) => {
                let recognised = server.clone();
                self.ask_process(server.new.main, move |engine, now| {
                    engine.server_recognised(now, at, recognised);
                });
                return false;
            }
            Some(ObservedUnit::Known(unit)) => {
                self.settle(at, top, unit);
                self.add_placement(top, server.new.main);
            }
            Some(ObservedUnit::Gone) | None => {}
        }
        self.report_withheld(owner);
        true
    }

    /// An agent ran in this unit, which identifies its run.
    fn settle(&mut self, at: BootTime, owner: AgentKey, unit: Option<Box<UnitFacts>>) {
        let Some(agent) = self.world.agent(owner) else { return };
        let (name, uid, main) = (agent.name.clone(), agent.uid, agent.main());
        let top = TopMost { name: &name, uid, main, unit: unit.as_deref(), witnessed: true };
        let account = self.account(at, &top);
        self.world.change_agent(owner, |agent| {
            (agent.account, agent.unit, agent.unsettled) = (account, unit, false);
        });
        if self.world.agent(owner).is_some_and(|a| !a.is_alive()) {
            self.run_may_have_ended(at, owner);
        }
    }

    /// The agent runs where this process does: enters that, and what the rules say of it.
    pub(super) fn add_placement(&mut self, key: AgentKey, process: ProcessId) {
        if let Some(placement) = self.world.node(process).and_then(Node::placement) {
            self.world.add_placement(key, placement);
            return self.exempt_by_rules(key);
        }
        self.ask(None, About::Process(process), move |engine, _, answer| {
            if let Answer::Process { process: Some(seen) } = answer {
                let unit = seen.unit.map(|facts| facts.unit);
                engine.world.add_placement(key, Placement { unit, slices: seen.slices, uid: seen.uid });
            }
            engine.exempt_by_rules(key);
        });
    }

    /// A service manager was started. The execs of its children are needed if rules name units.
    pub(super) fn manager_ran(&mut self, id: ProcessId) {
        if self.rules.name_units() && self.managers.insert(id) {
            self.effects.push_back(Effect::Track { process: id, tracking: Tracking::Manager });
        }
    }

    /// Whether this process is the main process of a unit that a rule names, or the unit has to be asked for first.
    /// In both cases the caller has nothing left to do.
    pub(super) fn is_main_of_unit(&mut self, at: BootTime, id: ProcessId, role: &Role) -> bool {
        let others = matches!(
            role,
            Role::Server { .. } | Role::Multiplexer | Role::Exempt { .. } | Role::ServiceManager
        );
        if others || !self.rules.name_units() || self.world.agent_of(id).is_some() {
            return false;
        }
        let Some(node) = self.world.node(id) else { return false };
        if !node.creator.is_some_and(|creator| self.managers.contains(&creator)) {
            return false;
        }
        let facts = match &node.unit {
            ObservedUnit::Known(facts) => facts.as_deref().filter(|facts| !facts.left_behind()),
            ObservedUnit::Gone => None,
            ObservedUnit::Unasked => {
                self.ask_process(id, move |engine, now| engine.classify_by_role(now, at, id, None));
                return true;
            }
        };
        let Some(facts) = facts else { return false };
        let Some(name) = self.rules.unit_agent(&facts.unit).map(str::to_owned) else { return false };
        // The main process of a unit is its first one. A process that the manager adopts later is not.
        let is_of = |unit: &UnitFacts| unit.start() == facts.start();
        let same = |a: &Agent| a.is_alive() && a.name == name && a.unit.as_deref().is_some_and(is_of);
        if self.world.agents().any(|(_, a)| same(a)) {
            return false;
        }
        self.agent_recognised(at, id, name, false);
        true
    }

    /// Finds the service managers in a snapshot of /proc, and the main processes of units that rules name. The main
    /// process is the oldest child of the manager in the present invocation of the unit.
    pub(super) fn find_managers(&mut self, snapshot: &Snapshot) -> BTreeSet<ProcessId> {
        if !self.rules.name_units() {
            return BTreeSet::new();
        }
        for process in &snapshot.processes {
            if process.id.pid == 1 || matches!(self.rules.role(&process.image), Role::ServiceManager) {
                self.manager_ran(process.id);
            }
        }
        let mut mains: BTreeMap<&Unit, ProcessId> = BTreeMap::new();
        for process in &snapshot.processes {
            let Some(facts) = process.unit.as_ref().filter(|facts| !facts.left_behind()) else { continue };
            let main = process.parent.is_some_and(|parent| self.managers.contains(&parent))
                && self.rules.unit_agent(&facts.unit).is_some()
                && !matches!(self.rules.role(&process.image), Role::Server { .. });
            if main {
                let first = mains.entry(&facts.unit).or_insert(process.id);
                if (process.id.start, process.id.pid) < (first.start, first.pid) {
                    *first = process.id;
                }
            }
        }
        mains.into_values().collect()
    }

    /// Ends the run of an agent if no top-most agent of that run is alive.
    pub(super) fn run_may_have_ended(&mut self, at: BootTime, key: AgentKey) {
        let Some((run, generation)) = self.world.agent(key).and_then(|a| a.account.run()) else { return };
        if self.world.run_lives(&run, generation) {
            return;
        }
        if let Some(run) = self.world.runs_mut().end(&run, generation) {
            self.persist(at, Fact::Run { run });
            self.forget_runs(at);
        }
    }

    /// Forgets runs that are over, to keep the bounds for each user. The oldest are forgotten first.
    pub(super) fn forget_runs(&mut self, at: BootTime) {
        if self.world.runs().is_crowded() {
            let held = self.held();
            for key in self.world.runs_mut().forget(&held) {
                self.persist(at, Fact::Forgotten { key });
            }
        }
    }

    /// Stores what the next daemon must know of a server that has an owner or is an orphan.
    pub(super) fn remember_server(&mut self, at: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        // Those that show it, and others of them. It may have thousands, and this is done for each of its execs.
        let main = server.main_process();
        let main = [main].into_iter().filter(|main| server.processes().contains(main));
        let shows = server.wrappers().iter().rev().chain(server.recognised()).take(SHOWN / 2).copied();
        let others = server.processes().iter().copied();
        let mut processes = BTreeSet::new();
        for process in main.chain(shows).chain(others) {
            if processes.len() == SHOWN {
                break;
            }
            processes.insert(process);
        }
        let tracked = Tracked {
            id: server.id,
            name: server.name.clone(),
            rule: server.rule.clone(),
            uid: self.world.node(server.id).map(|node| node.uid),
            processes: processes.into_iter().collect(),
            owner: self.world.owner_of(server).map(tracked_owner),
            run: server.account.as_ref().and_then(crate::model::RunView::run),
            start: Some(TrackedStart {
                seeks_owner: server.seeks_owner,
                adopted: server.provenance.is_adopted(),
                made_apart: server.made_apart,
                spoken: server.spoken,
                gateway: server.gateway,
                stdin: server.stdin,
                owner_exited: self.world.owner_of(server).and_then(Agent::exited),
                guarded_by: self.tracked_guards(server),
                programs: self.tracked_programs(server),
                left: server.left.iter().copied().filter(|id| self.may_live(*id)).collect(),
            }),
        };
        self.persist(at, Fact::Server { server: tracked });
    }
}

pub(super) fn tracked_owner(agent: &Agent) -> TrackedOwner {
    let placements = agent.placements.clone();
    TrackedOwner {
        main: agent.main(),
        name: agent.name.clone(),
        uid: agent.uid,
        implied: agent.implied,
        placements,
    }
}

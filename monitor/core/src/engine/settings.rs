//! A change of configuration while the daemon runs. From then on everything that is known is judged by the new
//! rules.
//!
//! The engine forgets nothing that it follows, and a change alone has no consequence. What the new rules protect is
//! spared at the next inspection. What they no longer protect is inspected again before anything is done to it.

use super::{Engine, agenda::Task};
use crate::{
    case::Event,
    lineage::{AgentKey, Node, Provenance, in_order},
    model::{BootTime, Image, Notice, Policy},
    recognise::{PROTOCOL, Role, Rules},
};

impl Engine {
    pub(super) fn reconfigure(&mut self, now: BootTime, policy: Policy) {
        // The shell serialises the rules itself. If they cannot be parsed, the old policy stays.
        let Ok(rules) = Rules::from_source(&policy.rules) else { return };
        self.policies += 1;
        self.change_alerts(now, &policy.alerts);
        let before = std::mem::replace(&mut self.rules, rules);
        let Policy { sessions, recognise_protocol, .. } = std::mem::replace(&mut self.policy, policy);
        let by_protocol = recognise_protocol != self.policy.recognise_protocol;
        if !self.policy.recognise_protocol {
            for id in self.first_messages.keys().copied().collect::<Vec<_>>() {
                self.is_no_server(id);
            }
        }
        if by_protocol && before == self.rules {
            self.disown(&before);
        }
        if before != self.rules {
            self.world.reclassify(&self.rules);
            self.disown(&before);
            self.recognise_anew(now, &before);
        }
        if sessions != self.policy.sessions {
            self.reconfigure_sessions(now);
        }
        // What was not to be ended did not wait for its tools.
        self.tools.values_mut().for_each(|tools| tools.awaited = None);
        // What the rules say of threads may be new.
        for key in self.world.server_keys() {
            self.judge_thread(now, key);
        }
        // A guard may hold now that did not, or the reverse.
        for key in self.world.server_keys() {
            self.server_event(now, key, Event::RulesChanged);
        }
        for key in self.agents_where(|_, _| true) {
            self.agent_event(now, key, Event::RulesChanged);
        }
        self.agenda.hasten(Task::Duplicates, now);
        let by = self.policy.decided_by.clone();
        self.emit(now, Notice::Reconfigured { mode: self.policy.mode, by });
    }

    /// Gives up what orphand must not end any more: servers that no rule recognises now, and servers of agents that
    /// are exempt now.
    fn disown(&mut self, before: &Rules) {
        let rules = &self.rules;
        let is_server =
            |rules: &Rules, image: &Image| matches!(rules.role_but_for_exemption(image), Role::Server { .. });
        for key in self.world.server_keys() {
            let Some(server) = self.world.server(key) else { continue };
            let images: Vec<Image> =
                server.recognised().iter().filter_map(|p| self.world.node(*p)?.image().cloned()).collect();
            let spoken = server.rule == PROTOCOL;
            let was = spoken || images.iter().any(|image| is_server(before, image));
            let is = (spoken && self.policy.recognise_protocol)
                || images.iter().any(|image| is_server(rules, image));
            let links: Vec<&Image> = self.world.links(server).filter_map(Node::image).collect();
            let has_links = !links.is_empty();
            let only_named = !spoken && links.into_iter().all(|image| rules.is_only_named(image));
            let Some(server) = self.world.server_mut(key) else { continue };
            if has_links {
                server.only_named = only_named;
            }
            if was && !is || server.disowned && is {
                server.disowned = !is;
            }
        }
        for key in self.agents_where(|_, _| true) {
            self.exempt_by_rules(key);
        }
    }

    /// Enters whether the present rules exempt an agent, by its program or its place, and whether it is a daemon by them. One that
    /// has ended is asked about by what it ran, or else by its name: a rule that is gone exempts nothing any more.
    pub(super) fn exempt_by_rules(&mut self, key: AgentKey) {
        let Some(agent) = self.world.agent(key) else { return };
        let (exempt, daemon) = if agent.is_alive() {
            let node = self.world.node(agent.main());
            let Some((node, role)) = node.and_then(|node| Some((node, node.role()?))) else { return };
            (role.leaves_for_good(), self.is_daemon(node))
        } else {
            let name = &agent.name;
            let named = || Image::new(name.clone(), vec![name.clone()], true);
            (self.rules.may_exempt(&agent.ran.clone().unwrap_or_else(named)), agent.daemon)
        };
        let exempt = exempt || self.rules.exempt_one_of(&agent.placements).is_some();
        self.world.change_agent(key, |agent| (agent.exempt, agent.daemon) = (exempt, daemon));
    }

    /// Recognises agents and servers that the new rules know and the old rules did not, among the processes that are
    /// followed. Processes that are not followed are found in /proc, which the shell reads next.
    fn recognise_anew(&mut self, now: BootTime, before: &Rules) {
        let matters = |node: &&Node| {
            let Some(program) = &node.exec.program else { return false };
            let wanted = match program.role {
                Role::Agent { .. } => self.world.agent_of(node.id).is_none(),
                Role::Server { .. } => is_free(node),
                _ => false,
            };
            wanted && program.role != before.role(&program.image)
        };
        let all = self.world.graph().ids().filter_map(|id| self.world.node(id));
        for process in in_order(all.filter(matters)) {
            // What the process did before it mattered was not followed.
            self.world.change(process, |node| node.provenance = Provenance::FOUND);
            self.classify(now, now, process);
        }
    }
}

fn is_free(node: &Node) -> bool {
    node.server.is_none() && !node.protected && node.stdin().is_wire()
}

//! Looks at servers: asked for here, and answered later, when other things have happened.
//!
//! Invariant: nothing is judged by an answer about what is not so any more. What a server was when the look was asked for is
//! compared with what it is when the answer comes; if it changed, the answer is thrown away and the server is looked at again,
//! soon at first, then once a second. One that never holds still (it forks without a pause) is judged after [`RESTLESS`] such looks all the
//! same, as long as its owner, its wires, its launch chain and the server proper are what they were; whatever of it has
//! changed since gets no signal for that look.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::{Discriminant, discriminant},
    time::Duration,
};

use super::{Engine, Purpose, judge::LOOK_AGAIN};
use crate::{
    lineage::{AgentKey, Origin, ServerKey},
    model::{About, BootTime, Holder, ProcessId, ServerFacts, Stdio, Subject, WireState},
    world::{Asked, LeftStage, Server, Stage, State},
};

/// After a look during which the server changed.
const LOOK_SOON: Duration = Duration::from_millis(100);
/// Looks in a row during which a server changed, until it counts as one that never holds still.
const RESTLESS: u32 = 3;
/// A question that has not been answered for so long is asked again.
const LOST: Duration = Duration::from_secs(60);
/// A new server of so many processes is looked at before anything else happens.
const SMALL: usize = 4;

/// What a process is, as far as records tell.
type Seen = (Origin, u32);

/// What a server was when a look at it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    frame: Frame,
    members: BTreeMap<ProcessId, Option<Seen>>,
}

/// What of a server may not change during a look, however restless it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    owner: Option<(AgentKey, Option<BootTime>)>,
    copies: Vec<(ProcessId, Option<Seen>)>,
    wires: [Stdio; 2],
    chain: Vec<(ProcessId, Option<Seen>)>,
    state: Discriminant<State>,
    stage: Option<Stage>,
    flags: [bool; 4],
    repaired: Option<BootTime>,
    policies: u64,
}

/// The same of an agent that was left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftSight {
    main: (ProcessId, Option<Seen>),
    stage: LeftStage,
    repaired: Option<BootTime>,
    policies: u64,
}

impl Engine {
    /// Asks what the host says about a server, unless that is being asked already.
    pub(super) fn look(&mut self, now: BootTime, key: ServerKey) {
        self.ask_for_look(now, key, false);
    }

    /// The same for one that has just been recognised: it is told of when its owner is known.
    pub(super) fn first_look(&mut self, now: BootTime, key: ServerKey) {
        let size =
            self.world.server(key).map_or(0, |server| server.processes().len() + server.wrappers().len());
        self.ask_for_look(now, key, !self.ready || size <= SMALL);
    }

    fn ask_for_look(&mut self, now: BootTime, key: ServerKey, at_once: bool) {
        let Some(server) = self.world.server(key) else { return };
        if let Some(Asked { token, since, .. }) = server.looking() {
            if now.since(since) < LOST {
                self.world.set_timer(key, Some(now + LOOK_AGAIN));
                return;
            }
            self.questions.remove(&token);
        }
        let turn = (!at_once).then_some(server.user());
        let subject = Subject { turn, ..self.subject(key, server) };
        let sight = if at_once { None } else { self.sight(key).map(Box::new) };
        self.world.set_timer(key, Some(now + LOOK_AGAIN));
        let token = self.ask(About::Server(subject), Purpose::Look { server: key, sight });
        self.world.begin_look(key, token, now);
    }

    fn subject(&self, key: ServerKey, server: &Server) -> Subject {
        let owner = server.owner().and_then(|owner| self.world.agent(owner));
        // Without a known owner those that have none either may have had the same.
        let siblings: Vec<_> = match owner {
            Some(owner) => owner.servers().iter().copied().collect(),
            None => self.world.servers().keys(),
        };
        let siblings = siblings.into_iter().filter(|other| *other != key);
        let siblings = siblings.filter_map(|other| self.world.server(other));
        let siblings = siblings.filter(|other| other.owner().is_some() == owner.is_some());
        Subject {
            processes: server.processes().iter().chain(server.wrappers()).copied().collect(),
            stdin: server.stdin,
            stdout: server.stdout,
            copies: owner.iter().flat_map(|owner| &owner.copies).map(|copy| copy.process).collect(),
            siblings: siblings
                .flat_map(|other| other.processes().iter().chain(other.wrappers()))
                .copied()
                .collect(),
            turn: None,
        }
    }

    /// The host answered.
    pub(super) fn look_answered(
        &mut self,
        now: BootTime,
        key: ServerKey,
        asked: Option<&Sight>,
        facts: &ServerFacts,
    ) {
        self.look_is_over(key);
        let Some(asked) = asked else {
            self.looked(now, key, facts);
            return;
        };
        let Some(sight) = self.sight(key) else { return };
        let Some(server) = self.world.server_mut(key) else { return };
        if sight == *asked {
            server.stale_looks = 0;
        } else {
            server.stale_looks = server.stale_looks.saturating_add(1);
        }
        let restless = server.stale_looks > RESTLESS;
        let fits = sight == *asked || (restless && sight.frame == asked.frame);
        if !fits || self.is_outlived(facts) {
            let delay = if restless { LOOK_AGAIN } else { LOOK_SOON };
            self.world.set_timer(key, Some(now + delay));
            return;
        }
        let is_new = |(id, seen): &(&ProcessId, &Option<Seen>)| asked.members.get(id) != Some(*seen);
        self.unseen = sight.members.iter().filter(is_new).map(|(id, _)| *id).collect();
        self.looked(now, key, facts);
        self.unseen = BTreeSet::new();
    }

    pub(super) fn look_is_over(&mut self, key: ServerKey) {
        self.world.end_look(key);
    }

    /// Whether somebody who held a wire then has ended since, and his number is another one's.
    fn is_outlived(&self, facts: &ServerFacts) -> bool {
        let newer = |holder: &Holder| {
            let now = self.world.graph().holder(holder.process.pid);
            now.is_some_and(|now| now != holder.process && now.start >= holder.process.start)
        };
        [&facts.stdin, &facts.stdout]
            .into_iter()
            .any(|wire| matches!(wire, WireState::Held { holders, .. } if holders.iter().any(newer)))
    }

    fn seen(&self, process: ProcessId) -> (ProcessId, Option<Seen>) {
        (process, self.world.node(process).map(|node| (node.origin(), node.sid)))
    }

    fn sight(&self, key: ServerKey) -> Option<Sight> {
        let server = self.world.server(key)?;
        let owner = server.owner().and_then(|owner| Some((owner, self.world.agent(owner)?)));
        let copies = owner.iter().flat_map(|(_, agent)| &agent.copies).map(|copy| self.seen(copy.process));
        let frame = Frame {
            copies: copies.collect(),
            owner: owner.map(|(owner, agent)| (owner, agent.exited())),
            wires: [server.stdin, server.stdout],
            chain: [server.proper()].iter().chain(server.wrappers()).map(|id| self.seen(*id)).collect(),
            state: discriminant(&server.state),
            stage: server.judged().map(|case| case.stage),
            flags: [server.seeks_owner, server.asked, server.disowned, server.proper_ended],
            repaired: self.last_repair,
            policies: self.policies,
        };
        let members = server.processes().iter().map(|id| self.seen(*id)).collect();
        Some(Sight { frame, members })
    }

    /// What an agent that was left behind is now.
    pub(super) fn left_sight(&self, key: AgentKey) -> Option<LeftSight> {
        let agent = self.world.agent(key).filter(|agent| agent.is_alive())?;
        Some(LeftSight {
            main: self.seen(agent.main()),
            stage: agent.left.stage,
            repaired: self.last_repair,
            policies: self.policies,
        })
    }
}

//! The candidates of a scene: the server that is judged and who is only fed by it, the other servers of its dead owner, and the
//! owner's inert copies. Whoever is none of them acts by itself.

use std::collections::BTreeSet;

use super::{
    aftermath::may_have_let_go,
    guards::guards,
    inspection::Inspection,
    membership::{Members, members},
    proof::stays_by_itself,
    rest::{is_unused, stays_silent},
    rows::Sides,
};
use crate::{
    case::{By, Verdict},
    lineage::{Graph, Node},
    model::{
        CopyFacts, Doubt, Guard, ProcessId, Stdio, UnitFacts,
        scene::{ProcessRow, Wait},
        text::base,
    },
    reach::{Kind, Party},
    recognise::{Rule, Rules, fork_server_listener, is_at_a_chosen_port, is_told_to_serve},
    world::{Agent, Server},
};

/// The candidates of this scene; the server that is judged is the first.
pub(super) fn candidates(inspection: &Inspection<'_>, own: &Members) -> Vec<Party> {
    let rows = inspection.rows;
    let mut parties = vec![judged(inspection, own)];
    let past = |server: &Server| rows.unit(server).filter(|unit| unit.left_behind()).map(UnitFacts::start);
    // For servers that existed before the daemon the owners are unknown. Servers of one past invocation of a unit had the
    // same owner.
    let same_past = |server: &Server| {
        let ended = past(inspection.server);
        server.owner().is_none() && ended.is_some() && ended == past(server)
    };
    // What a living owner has is in use, whoever lists it.
    let is_candidate = |server: &&&Server| match inspection.owner() {
        Some(owner) => !owner.is_alive(),
        None => same_past(server),
    };
    // Who has no row is joined with nobody here.
    let is_joined = |server: &&&Server| server.all().any(|one| rows.row(one).is_some());
    let may_be_told = !inspection.siblings.is_empty() && !may_have_let_go(inspection, own);
    for server in inspection.siblings.iter().filter(is_joined).filter(is_candidate) {
        parties.push(sibling(inspection, may_be_told, server));
    }
    parties.extend(fed(inspection, own));
    if let Some(owner) = inspection.dead_owner() {
        parties.extend(owner.copies.iter().filter_map(|copy| inert_copy(inspection, owner, copy)));
    }
    // What orphans called that were ended, they do not need any more.
    let agents = inspection.world.agents().filter(|(_, agent)| !agent.is_alive());
    let members: BTreeSet<ProcessId> = agents.flat_map(|(_, agent)| &agent.ended).copied().collect();
    parties.push(Party { members, ..Party::default() });
    parties
}

fn judged(inspection: &Inspection<'_>, own: &Members) -> Party {
    let (owner, released) = release(inspection, own);
    // What a host that no rule knows started earlier is not in the graph.
    let family = inspection.owner().filter(|_| owner.is_some()).map(|owner| {
        let graph = inspection.world.graph();
        let below: BTreeSet<ProcessId> = graph.descendants(owner.main()).into_iter().collect();
        let works_for = |row: &&ProcessRow| {
            graph.get(row.process).is_some_and(|node| node.origin() == owner.origin)
                || below.contains(&row.process)
                || inspection.rows.parents(row).any(|above| above == owner.main())
        };
        inspection.rows.scene.processes.iter().filter(works_for).map(|row| row.process).collect()
    });
    let family = family.unwrap_or_default();
    Party { owner, family, released, ..of_server(inspection, own) }
}

/// Another server of a dead owner. One that stays, whatever happens and whoever reaches it, acts by itself, and so does one that is
/// at work; the client of a container does not. What waits in its standard input only its own inspection tells. One that has let
/// something go may end that when it is told of the end of the server that is judged: it is ended first, if that has let nothing go
/// (`may_be_told`).
fn sibling(inspection: &Inspection<'_>, may_be_told: bool, server: &Server) -> Party {
    let inspection = &Inspection { server, ..*inspection };
    let own = members(inspection);
    let keeps = |guard: &Guard| !matches!(guard, Guard::Observe | Guard::Found | Guard::Container);
    let stays = |verdict: &Verdict| verdict.has_deadline() || verdict.doubts.contains(&Doubt::OnlyNamed);
    let acts = server.phase.verdict().is_some_and(stays)
        || guards(inspection, &own).iter().any(keeps)
        || stays_by_itself(inspection, &own).next().is_some()
        || (may_be_told && may_have_let_go(inspection, &own))
        || inspection.rows.scene.blind(|process| server.contains(process)).is_some();
    Party { acts, ..of_server(inspection, &own) }
}

fn of_server(inspection: &Inspection<'_>, own: &Members) -> Party {
    // A driver was told its port by the server that is connected with it.
    let held = inspection.rows.sides_of(own.all());
    let is_service = |process: &&ProcessId| {
        inspection.rows.has_listener(**process)
            && inspection.rows.row(**process).is_some_and(|row| {
                let is_driver = base(&row.image.exe).ends_with("driver");
                (!inspection.is_a_browser(row) || is_at_a_chosen_port(&row.image))
                    && (!is_driver || !inspection.rows.is_called_by(row.process, &held))
            })
    };
    // What nobody told a port serves at its usual one.
    let serves =
        |process: &ProcessId| is_told(inspection, *process) || inspection.rows.is_at_a_chosen_port(*process);
    let mut services = own.tied.iter().filter(is_service);
    Party {
        members: inspection.rows.with_new_children(own.all().collect(), inspection.world.graph()),
        wires: inspection.server.wires(),
        told_to_serve: is_gateway(inspection)
            || may_serve_instead(inspection)
            || runs_a_service(inspection, own, &held)
            || own.core.iter().chain(&own.wrappers).any(|process| is_told(inspection, *process))
            || services.any(serves),
        ..Party::default()
    }
}

/// Whether it talks, or has talked, to a server that it started, on wires of its own. It has that for those who call it, wherever it
/// listens: a gateway has a port without being told one.
fn is_gateway(inspection: &Inspection<'_>) -> bool {
    let server = inspection.server;
    server.gateway || inspection.world.unheard(server).next().is_some()
}

/// Whether a process that it started, and reads from, listens for others: a web server that a person has asked for. Of a server
/// that is being ended none is left that could be connected there; a fork server is called by short connections.
fn runs_a_service(inspection: &Inspection<'_>, own: &Members, held: &Sides) -> bool {
    let rows = inspection.rows;
    let serves = |process: ProcessId| {
        rows.serves_beyond(process, held)
            && rows.row(process).is_some_and(|row| {
                !inspection.is_a_browser(row) && fork_server_listener(&row.image).is_none()
            })
    };
    !inspection.server.phase.is_signalled() && own.tied.iter().any(|process| serves(*process))
}

/// Whether nobody was seen to speak to it over its wires, and its name or its host proves little: programs start their
/// children on pipes, services too (node's `spawn`), and what serves at its usual port is told nothing.
fn may_serve_instead(inspection: &Inspection<'_>) -> bool {
    let (server, is_implied) = (inspection.server, inspection.owner().is_some_and(|owner| owner.implied));
    !server.spoken && (server.only_named || is_implied)
}

/// By its command line, as witnessed or as it is now: an exec may have been lost. Or by its environment.
fn is_told(inspection: &Inspection<'_>, process: ProcessId) -> bool {
    let witnessed = inspection.node(process).and_then(Node::image);
    let now = inspection.rows.row(process);
    let mut images = witnessed.into_iter().chain(now.map(|row| &row.image));
    now.is_some_and(|row| row.told_to_serve) || images.any(is_told_to_serve)
}

/// Who was let go and has nothing but what the server writes to his standard input, with no output: he reports for it, or waits for its
/// end (chrome-devtools-mcp). He lives on without it, and does not need it, but for work of the two that has its own time.
fn fed(inspection: &Inspection<'_>, own: &Members) -> impl Iterator<Item = Party> {
    let held = inspection.rows.sides_of(own.all());
    let is_fed = move |process: &&ProcessId| {
        inspection.rows.has_input_alone(**process, &held)
            && inspection
                .rows
                .row(**process)
                .is_some_and(|row| row.full && row.stdio[1..] == [Stdio::Null; 2])
            && inspection.world.graph().children(**process).next().is_none()
    };
    let fed = own.let_go.iter().filter(is_fed);
    fed.map(|process| Party { kind: Kind::Copy, members: BTreeSet::from([*process]), ..Party::default() })
}

/// A forked copy of the killed owner that is inert: it never ran another program, has no server and no child, is in its
/// session, waits for nothing that comes by itself nor for the answer of a server, and has done nothing since the owner's end.
fn inert_copy(inspection: &Inspection<'_>, owner: &Agent, then: &CopyFacts) -> Option<Party> {
    let process = then.process;
    let (row, node) = (inspection.rows.row(process)?, inspection.node(process)?);
    let is_inert = owner.killed
        && node.origin() == owner.origin
        && row.sid == owner.sid
        && row.waits == Wait::Ends
        // Who waits for a child and has none waits for the end of a process that it traces.
        && !row.awaits_child
        && !row.reaps
        && row.work.is_some()
        && row.work == then.work
        && !inspection.world.made_a_server(process)
        && inspection.world.graph().children(process).next().is_none()
        && !awaits_an_answer(inspection, row);
    let members = BTreeSet::from([process]);
    is_inert.then(|| Party { kind: Kind::Copy, members, ..Party::default() })
}

/// Whether a copy reads what a server of its owner may write: that may work on what the copy, or whoever it works for, asked it.
fn awaits_an_answer(inspection: &Inspection<'_>, copy: &ProcessRow) -> bool {
    let is_of_a_server = |process: ProcessId| {
        let mut servers = inspection.siblings.iter().copied().chain([inspection.server]);
        servers.any(|server| server.contains(process))
    };
    inspection.rows.writers_to(copy).any(is_of_a_server)
}

/// The owner, if it lives and let the server go, and which wires it let go of: one mechanism for the abandoned server, the
/// ended thread, the expired session and the manager that is done with it. It still has ends, as a rule. Those do not count if the server did nothing since.
fn release(inspection: &Inspection<'_>, members: &Members) -> (Option<ProcessId>, [bool; 2]) {
    let Some(owner) = inspection.living_owner() else { return (None, [false; 2]) };
    if inspection.released_in_words().is_some() {
        // Whether it was used is a doubt of its own, which a person may overrule.
        return (Some(inspection.server.maker.unwrap_or(owner.main())), [true; 2]);
    }
    if inspection.server.phase.released().is_none() {
        return (None, [false; 2]);
    }
    if inspection.thread_has_ended()
        && rule_of(inspection.rules, inspection.world.graph(), owner).is_some_and(|rule| rule.thread_scoped)
        && is_unused(inspection, members, By::Thread)
    {
        return (Some(owner.main()), [true; 2]);
    }
    // It closed standard input and ended the head of the launch chain.
    let closed = inspection.is_abandoned()
        && inspection.server.head_killed.is_some()
        && inspection.rows.is_hung_up(inspection.server.stdin, true, members)
        && stays_silent(inspection, members);
    (Some(owner.main()), [false, closed])
}

/// The rule of the configuration that recognises this agent; `None` for an implied agent. By `thread_scoped = true` in
/// it the user says that a server ends with the thread that started it.
pub fn rule_of<'r>(rules: &'r Rules, graph: &Graph, agent: &Agent) -> Option<&'r Rule> {
    let unit = agent.unit.as_ref().map(|facts| &facts.unit);
    let image = graph.get(agent.main()).and_then(Node::image);
    rules.rule_of(&agent.name, image, unit).filter(|_| !agent.implied)
}

//! The proof standard: what orphand may end without being asked by a person.
//!
//! This is the only place that concludes "orphan". Each condition is a function of its own. Anything that keeps a
//! condition from being proven is a doubt, and nothing is ended while there is a doubt. A proven orphan may still
//! stay because of a guard.

use std::{collections::BTreeSet, time::Duration};

use super::{
    aftermath::{cleaning_up, not_to_be_asked, path_to_what_is_cleaned_up},
    container,
    guards::guards,
    inspection::Inspection,
    membership::{Members, members},
    rest::{must_rest, somebody_uses_it},
    uses::{Uses, uses, wire_unknown},
};
use crate::{
    case::{self, By},
    model::{Doubt, Evidence, FirstMessage, ReachedBy, UnitFacts, scene::ProcessRow},
    recognise::{PROTOCOL, Role},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// What the case continues with, without the memory.
    pub case: case::Finding,
    /// The processes of the server, by their relation to it.
    pub members: Members,
    /// A living process that the server works for. If there is one, the server is no orphan.
    pub host: Option<ProcessRow>,
    /// For how long the server must still do nothing, if it was not used, and that alone is missing to show it.
    pub must_rest: Option<Duration>,
    pub path: Vec<ReachedBy>,
}

/// Examines a server whose owner has exited or is unknown.
pub fn examine(inspection: &Inspection<'_>) -> Finding {
    let members = members(inspection);
    let uses = uses(inspection, &members);
    let own = [
        owner_is_unknown(inspection, &members, &uses),
        somebody_uses_it(inspection, &members),
        took_no_message(inspection),
    ];
    let own = own.into_iter().flatten().chain(stays_by_itself(inspection, &members));
    let inside = container::doubts(inspection, &members);
    let doubts: BTreeSet<Doubt> = uses.doubts.iter().copied().chain(own).chain(inside).collect();
    let container = container::to_stop(inspection, &members).map(|found| found.container.clone());
    let case = case::Finding {
        has_owner: uses.host.is_some(),
        too_early: uses.too_early,
        evidence: evidence(inspection, uses.hung_up[0]),
        doubts: doubts.into_iter().collect(),
        guards: guards(inspection, &members),
        container,
        sessions: members.sessions.clone(),
        tied: members.tied.clone(),
        not_to_be_asked: not_to_be_asked(inspection, &members),
        ..case::Finding::default()
    };
    let must_rest = must_rest(inspection, &members);
    let mut path = uses.path;
    if case.doubts.contains(&Doubt::DependedOn) {
        path.splice(..0, path_to_what_is_cleaned_up(inspection, &members));
    }
    Finding { case, host: uses.host, must_rest, path, members }
}

/// The doubts of a server that no edge tells: for who stays because of them nobody has to reach it, so it acts by itself.
pub(super) fn stays_by_itself(
    inspection: &Inspection<'_>,
    members: &Members,
) -> impl Iterator<Item = Doubt> + use<> {
    let depended_on = cleaning_up(inspection, members).next().map(|_| Doubt::DependedOn);
    let doubts = [wire_unknown(inspection, members), only_named(inspection), depended_on];
    doubts.into_iter().flatten()
}

/// Conditions 1 and 3: the server had an owner, and the owner has exited. There is a doubt if it is not known who
/// made the wires, or that the makers have exited. Without a known owner there are two other proofs: the unit has
/// gone on without the server, or both wires have hung up and the server is a child of a service manager. In the
/// second case nobody can use the server, whoever made it.
fn owner_is_unknown(inspection: &Inspection<'_>, members: &Members, uses: &Uses) -> Option<Doubt> {
    let left_behind = inspection.unit().is_some_and(UnitFacts::left_behind);
    // Where the main process exited by itself, no wire is left that could show the owner.
    let has_wires = !members.core.is_empty() || inspection.server.phase.is_signalled();
    let nobody_can_use_it = has_wires && uses.hung_up[1];
    let known = match inspection.owner() {
        // The owner exited before its program could be asked for: neither program nor user is known.
        Some(owner) if owner.name.is_empty() => left_behind || nobody_can_use_it,
        // If another program made the standard output wire, the wire belongs to that program.
        Some(_) if inspection.server.made_apart => nobody_can_use_it,
        Some(_) => true,
        None => {
            left_behind || (nobody_can_use_it && inspection.server.provenance.is_adopted() && !uses.listens)
        }
    };
    (!known).then_some(Doubt::OwnerUnknown)
}

/// Condition 1: it is a server. Below an agent that a rule knows, a name says so, unless it may be a hook. Any other program may
/// start jobs on pipes, and their names may have the same words.
fn only_named(inspection: &Inspection<'_>) -> Option<Doubt> {
    let server = inspection.server;
    let shows_it = is_of_known_agent(inspection) && !server.unlooked;
    (server.only_named && !shows_it).then_some(Doubt::OnlyNamed)
}

/// Condition 1, for what is a server by its first message alone: while that waits, it shows what its writer takes the program
/// for, and not what the program is. Whoever a relay accepts may write one to a job. What is called like a server, too, is one
/// (mcp-remote reads nothing before somebody has signed in).
fn took_no_message(inspection: &Inspection<'_>) -> Option<Doubt> {
    let server = inspection.server;
    // What is left of a bridge was spoken to by that, and not by the agent.
    let first = match server.heard.as_deref() {
        Some(FirstMessage::Mcp { client }) => client,
        _ => &server.client,
    };
    let is_server = |image| matches!(inspection.rules.role(image), Role::Server { .. });
    let is_named = || inspection.main_image().is_some_and(is_server);
    // The first one named a client: what waits and does not name it came after that.
    let is_later = |message: &FirstMessage| match message {
        FirstMessage::Mcp { client } => first.is_some() && client != first,
        FirstMessage::Other => first.is_some(),
        message => message.is_nothing(),
    };
    let waits = inspection.facts.unread_input.as_ref().is_some_and(|message| !is_later(message));
    let waits = (server.rule == PROTOCOL || server.heard.is_some()) && waits;
    let is_known = server.heard.is_none() && is_of_known_agent(inspection);
    (waits && !is_known && !is_named()).then_some(Doubt::OnlyNamed)
}

fn is_of_known_agent(inspection: &Inspection<'_>) -> bool {
    inspection.owner().is_some_and(|owner| !owner.implied)
}

fn evidence(inspection: &Inspection<'_>, is_hung_up: bool) -> Vec<Evidence> {
    let (has_owner, lives) = (inspection.server.owner().is_some(), inspection.living_owner().is_some());
    let (by, unit) = (inspection.released_in_words(), inspection.unit());
    // If a person asks to end a server whose owner lives, nothing speaks for an orphan.
    let all = [
        (lives && inspection.is_abandoned(), Evidence::Abandoned),
        (has_owner && !lives, Evidence::OwnerExited),
        (!has_owner, Evidence::NoOwner),
        (by == Some(By::Session), Evidence::SessionExpired),
        (by == Some(By::Manager), Evidence::Released),
        (by == Some(By::Idle), Evidence::IdleDuplicate),
        (inspection.thread_has_ended(), Evidence::SpawnerThreadExited),
        (is_hung_up, Evidence::StdinHangup),
        (unit.is_some_and(UnitFacts::is_stale), Evidence::StaleInvocation),
        (unit.is_some_and(UnitFacts::is_stopped), Evidence::UnitStopped),
    ];
    all.into_iter().filter(|(speaks, _)| *speaks).map(|(_, evidence)| evidence).collect()
}

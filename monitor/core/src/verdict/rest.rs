//! Whether anybody has used a server since its case was opened, where its owner lives and may use it: the rest of the
//! server shows it ([`crate::world::Watch`]).

use std::time::Duration;

use super::{inspection::Inspection, membership::Members};
use crate::{
    case::By,
    model::{
        Doubt, FirstMessage,
        scene::{ProcessRow, Wait},
    },
};

/// Whether nobody has used the server since it was released by this one, and it did nothing at all for the grace. A server that
/// is being ended works on its end: for it that was proven before.
pub fn is_unused(inspection: &Inspection<'_>, members: &Members, by: By) -> bool {
    is_being_ended(inspection)
        || rested(inspection, members, by).is_some_and(|rested| rested >= inspection.policy.abandoned_grace)
}

/// Whether nothing was written, since the head of the launch chain was killed and for the grace, by any process of the
/// server that can write an answer. One that works on writes its results. A server that is being ended has last words:
/// for it that was proven before.
pub fn stays_silent(inspection: &Inspection<'_>, members: &Members) -> bool {
    let answers = |facts: &&ProcessRow| {
        members.core.contains(&facts.process) || facts.stdio.contains(&inspection.server.stdout)
    };
    let writers = inspection.processes(members).filter(answers).map(|facts| facts.process);
    let silent = || inspection.server.watches.get(&By::Owner)?.silent(writers);
    is_being_ended(inspection) || silent().is_some_and(|silent| silent >= inspection.policy.abandoned_grace)
}

/// The doubt that remains about a server of which somebody said that it is released: it may be used nevertheless. `None` if
/// it is proven that nobody does.
pub fn somebody_uses_it(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let asked = inspection.server.phase.asked_anyway();
    let by = inspection.released_in_words().filter(|_| !asked)?;
    let owes = by == By::Idle && !is_being_ended(inspection) && may_owe_an_answer(inspection, members);
    (owes || !is_unused(inspection, members, by)).then_some(Doubt::Active)
}

/// For how long the server must still do nothing, if it was not used, and that alone is missing to show it.
pub fn must_rest(inspection: &Inspection<'_>, members: &Members) -> Option<Duration> {
    // An abandoned server may compute and read: a timer keeps it alive.
    let phase = &inspection.server.phase;
    let by = phase.released().filter(|by| *by != By::Owner && !phase.asked_anyway())?;
    let rested = rested(inspection, members, by).filter(|_| !is_being_ended(inspection))?;
    inspection.policy.abandoned_grace.checked_sub(rested).filter(|missing| !missing.is_zero())
}

/// For how long all processes of the server have done nothing; `None` if the server was used since it was released by this one, or
/// may have been.
fn rested(inspection: &Inspection<'_>, members: &Members, by: By) -> Option<Duration> {
    let server = inspection.server;
    let watch = server.watches.get(&by).filter(|_| !members.core.is_empty())?;
    // A client does nothing while its container works.
    let inside = inspection.facts.container.iter().flat_map(|container| container.rows());
    watch.unused(inspection.rows_of_server().chain(inside).map(|row| row.process), server.wires())
}

fn is_being_ended(inspection: &Inspection<'_>) -> bool {
    let phase = &inspection.server.phase;
    phase.is_terminating() && phase.is_signalled()
}

/// Whether a call of a server that does nothing may be under way. A call may take as long as its idleness, and wait for
/// something; nobody reads its messages, so nobody knows. It may be if a request waits to be read, a process that it
/// started lives, it has a connection that may bring something, or it waits for anything that comes by itself, such as a
/// time. A server that owes nothing waits for its next request and for nothing else. What launches it only waits for its
/// end.
fn may_owe_an_answer(inspection: &Inspection<'_>, members: &Members) -> bool {
    let (server, rows) = (inspection.server, inspection.rows);
    let own: Vec<&ProcessRow> =
        inspection.rows_of_server().filter(|row| !members.wrappers.contains(&row.process)).collect();
    let known = members.all().collect();
    let is_at_rest = |row: &&ProcessRow| {
        server.recognised().contains(&row.process)
            && row.waits == Wait::Ends
            && !rows.is_connected(row.process, server.wires(), members)
    };
    !inspection.facts.unread_input.as_ref().is_some_and(FirstMessage::is_nothing)
        || own.is_empty()
        || !own.iter().all(is_at_rest)
        || rows.new_below(&known, inspection.world.graph()).next().is_some()
}

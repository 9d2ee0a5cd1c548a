//! Whether anybody has used a server since its case was opened, where its owner lives and may use it: the rest of the
//! server shows it ([`crate::world::Watch`]).

use std::time::Duration;

use super::{inspection::Inspection, membership::Members};
use crate::{
    case::Reason,
    model::{Doubt, Stdio, scene::ProcessRow},
    world::Counted,
};

/// Whether nobody has used the server since this reason arose, and it did nothing at all for the grace. A server that
/// is being ended works on its end: for it that was proven before.
pub fn is_unused(inspection: &Inspection<'_>, members: &Members, reason: Reason) -> bool {
    is_being_ended(inspection)
        || rested(inspection, members, reason).is_some_and(|rested| rested >= inspection.rest)
}

/// Whether nothing was written, since the head of the launch chain was killed and for the grace, by any process of the
/// server that can write an answer. One that works on writes its results. A server that is being ended has last words:
/// for it that was proven before.
pub fn stays_silent(inspection: &Inspection<'_>, members: &Members) -> bool {
    let answers = |facts: &&ProcessRow| {
        members.core.contains(&facts.process) || facts.stdio.contains(&inspection.server.stdout)
    };
    let writers = inspection.processes(members).filter(answers).map(|facts| facts.process);
    let silent = || inspection.server.watches.get(&Reason::Abandoned)?.silent(writers);
    is_being_ended(inspection) || silent().is_some_and(|silent| silent >= inspection.rest)
}

/// The doubt that remains about a server whose session has expired: somebody may use it nevertheless. `None` if it is
/// proven that nobody does.
pub fn somebody_uses_it(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let asked = inspection.server.phase.asked();
    let concerns = inspection.is_about_session() && !asked;
    (concerns && !is_unused(inspection, members, Reason::SessionExpired)).then_some(Doubt::Active)
}

/// For how long the server must still do nothing, if it was not used, and that alone is missing to show it.
pub fn must_rest(inspection: &Inspection<'_>, members: &Members) -> Option<Duration> {
    let reason = inspection.server.phase.cause().filter(|cause| !cause.asked)?.reason;
    // An abandoned server may compute and read: a timer keeps it alive.
    if reason == Reason::Abandoned {
        return None;
    }
    let rested = rested(inspection, members, reason).filter(|_| !is_being_ended(inspection))?;
    inspection.rest.checked_sub(rested).filter(|missing| !missing.is_zero())
}

/// For how long all processes of the server have done nothing; `None` if the server was used since this reason arose, or
/// may have been.
fn rested(inspection: &Inspection<'_>, members: &Members, reason: Reason) -> Option<Duration> {
    let is_pipe = |wire: Stdio| matches!(wire, Stdio::Pipe(_));
    let counted =
        Counted { requests: is_pipe(inspection.server.stdin), answers: is_pipe(inspection.server.stdout) };
    let watch = inspection.server.watches.get(&reason).filter(|_| !members.core.is_empty())?;
    // A client does nothing while its container works.
    let inside = inspection.facts.container.iter().flat_map(|container| container.rows());
    watch.unused(inspection.rows_of_server().chain(inside).map(|row| row.process), counted)
}

fn is_being_ended(inspection: &Inspection<'_>) -> bool {
    let phase = &inspection.server.phase;
    phase.is_terminating() && phase.strongest_signal().is_some()
}

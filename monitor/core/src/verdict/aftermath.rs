//! What a server, or a script around it, would do to others on its way to the end, if it were asked to end: handlers and traps
//! are code of its own. For `proof`.

use std::collections::BTreeSet;

use super::{inspection::Inspection, membership::Members};
use crate::{
    model::{Doubt, ProcessId, scene::ProcessRow},
    recognise::goes_on,
};

/// Which processes of the server get SIGKILL where others get SIGTERM, because they do who knows what before they end, or
/// when what they started has ended: who has a handler for SIGTERM, where he or, if he is of the core, anybody here has let
/// something go; and a script around the main process (`trap 'kill 0' EXIT`), which would go on without it.
pub(super) fn not_to_be_asked(inspection: &Inspection<'_>, members: &Members) -> BTreeSet<ProcessId> {
    let rows = inspection.rows;
    let above = |processes: &BTreeSet<ProcessId>| -> BTreeSet<ProcessId> {
        processes.iter().filter_map(|process| rows.row(*process)).flat_map(|row| rows.parents(row)).collect()
    };
    let (leaving, launching) = (above(&members.let_go), above(&members.core));
    let has_let_go = |process| {
        leaving.contains(&process) || (members.core.contains(&process) && !members.let_go.is_empty())
    };
    let is_one = |row: &&ProcessRow| {
        (row.catches_term && has_let_go(row.process) && !members.wrappers.contains(&row.process))
            || (launching.contains(&row.process) && goes_on(&row.image) && !has_others_below(inspection, row))
    };
    inspection.processes(members).filter(is_one).map(|row| row.process).collect()
}

/// Whether a script around the server has other programs below it, and cleans up when the server ends (`trap 'kill $(jobs -p)'
/// EXIT`): for that bash has a handler for SIGTERM. It is not signalled itself, since it has others below it.
pub(super) fn is_cleaned_up(inspection: &Inspection<'_>, members: &Members) -> Option<Doubt> {
    let cleans_up = |row: &ProcessRow| {
        members.wrappers.contains(&row.process)
            && row.catches_term
            && goes_on(&row.image)
            && has_others_below(inspection, row)
    };
    inspection.processes(members).any(cleans_up).then_some(Doubt::DependedOn)
}

fn has_others_below(inspection: &Inspection<'_>, row: &ProcessRow) -> bool {
    let mut below = inspection.world.graph().below(row.process);
    below.any(|below| !inspection.server.contains(below.id))
}

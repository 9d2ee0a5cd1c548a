//! What a server that does nothing may still owe: a call of it may take as long as its idleness, and wait for something.
//!
//! Nobody reads its messages, so nobody knows whether a call is under way. A server that owes nothing waits for its next
//! request and for nothing else.

use super::{inspection::Inspection, membership::Members};
use crate::model::scene::{ProcessRow, Wait};

/// Whether a call of the server may be under way: a request waits to be read, a process that it started lives, it has a
/// connection that may bring something, or it waits for anything that comes by itself, such as a time. What launches it
/// only waits for its end.
pub(super) fn may_owe_an_answer(inspection: &Inspection<'_>, members: &Members) -> bool {
    let (server, rows) = (inspection.server, inspection.rows);
    let own: Vec<&ProcessRow> =
        inspection.rows_of_server().filter(|row| !members.wrappers.contains(&row.process)).collect();
    let known = members.all().collect();
    let is_at_rest = |row: &&ProcessRow| {
        server.recognised().contains(&row.process)
            && row.waits == Wait::Ends
            && !rows.is_connected(row.process, [server.stdin, server.stdout], members)
    };
    inspection.facts.unread != Some(0)
        || own.is_empty()
        || !own.iter().all(is_at_rest)
        || rows.with_new_children(members.all().collect(), inspection.world.graph()) != known
}

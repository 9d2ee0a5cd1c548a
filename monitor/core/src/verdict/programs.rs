//! Processes of a server that are there for a person, or are driven by it: programs with windows, and browsers.

use std::collections::BTreeSet;

use super::inspection::Inspection;
use crate::{
    model::{ProcessId, scene::ProcessRow, text::base},
    recognise::{is_browser, is_told_to_be_driven},
};

/// Those of these processes that have windows for a person, and all below them that help: the programs that draw pages have none
/// themselves. What a recognised process created is the server's own, and so are the windows of a browser that is driven.
pub(super) fn with_windows(inspection: &Inspection<'_>, all: &[&ProcessRow]) -> BTreeSet<ProcessId> {
    let (mut having, mut below) = (BTreeSet::new(), BTreeSet::new());
    let is_driven = |row: &ProcessRow| is_a_browser(inspection, row) && is_told_to_be_driven(&row.image);
    for row in all.iter().filter(|row| row.has_display && !is_driven(row)) {
        having.insert(row.process);
        if !inspection.server.recognised().contains(&row.process) && !below.contains(&row.process) {
            below.extend(inspection.world.graph().descendants(row.process));
        }
    }
    having.extend(below);
    having
}

/// Whether the process is a browser: one that nothing of the server has a channel to was opened for a person, too.
pub(super) fn is_a_browser(inspection: &Inspection<'_>, facts: &ProcessRow) -> bool {
    let name = inspection.rules.title(&facts.image);
    [name.as_str(), base(&facts.image.exe)].into_iter().any(is_browser)
}

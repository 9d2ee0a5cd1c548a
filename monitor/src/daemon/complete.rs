//! Command lines that do not fit into a record are completed before the engine hears of them: what it is handed is recorded, so a
//! replay is the same.

use std::{collections::BTreeMap, time::Duration};

use crate::{host::Procfs, os::clock, source::completion::completed};
use orphand_core::{
    model::{BootTime, ProcessEvent},
    recognise::Rules,
};

/// A look at one process that takes longer is told by its user: it may be made to.
const SLOW: Duration = Duration::from_millis(100);
/// So long nothing of that user is completed.
const PUNISHED: Duration = Duration::from_secs(10);

/// Completes what the kernel side has cut short.
#[derive(Debug, Default)]
pub struct Completer {
    /// Real user id -> until when.
    slow: BTreeMap<u32, BootTime>,
}

impl Completer {
    /// The same record; with the whole command line if that makes another thing of the process. Whatever it is, a long command line
    /// without a meaning is not kept.
    pub fn whole(&mut self, procfs: &Procfs, rules: &Rules, event: ProcessEvent) -> ProcessEvent {
        let ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio } = event else { return event };
        let before = clock::now();
        self.slow.retain(|_, until| *until > before);
        let found = if image.argv_truncated && !self.slow.contains_key(&uid) {
            procfs.command_line(process).and_then(|found| completed(&image, &found))
        } else {
            None
        };
        let took = clock::now().since(before);
        if took > SLOW {
            tracing::warn!(
                "the command line of {process} of user {uid} took {took:?} to read; long ones of that user are not read for {PUNISHED:?}"
            );
            self.slow.insert(uid, before + took + PUNISHED);
        }
        let image = match found {
            Some(found)
                if rules.role(&found) != rules.role(&image)
                    || rules.role_but_for_exemption(&found) != rules.role_but_for_exemption(&image) =>
            {
                found
            }
            _ => image,
        };
        ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio }
    }
}

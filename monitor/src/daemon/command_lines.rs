//! Command lines that do not fit into a record are completed from /proc before the record is handed to the engine: what the engine
//! is handed is recorded, so a replay gives the same.

use std::{collections::BTreeMap, time::Duration};

use crate::{host::Procfs, os::clock, source::completion::completed};
use orphand_core::{
    model::{BootTime, ProcessEvent},
    recognise::Rules,
};

/// A read that takes longer is held against the user of the process, who may have made it slow on purpose.
const SLOW: Duration = Duration::from_millis(100);
/// Afterwards no command line of that user is completed for so long.
const PAUSE: Duration = Duration::from_secs(10);

/// Completes what the kernel side has cut short.
#[derive(Debug, Default)]
pub struct Completer {
    /// Real user id -> until when its command lines are not read.
    slow: BTreeMap<u32, BootTime>,
}

impl Completer {
    /// The same record, with the whole command line if the process has another role by it. Otherwise the cut one stays: a long
    /// command line that changes nothing is not worth its memory.
    pub fn complete(&mut self, procfs: &Procfs, rules: &Rules, event: ProcessEvent) -> ProcessEvent {
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
                "the command line of {process} of user {uid} took {took:?} to read; long ones of that user are not read for {PAUSE:?}"
            );
            self.slow.insert(uid, before + took + PAUSE);
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

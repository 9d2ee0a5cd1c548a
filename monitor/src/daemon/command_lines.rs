//! Records are completed before they are handed to the engine: command lines that do not fit, from /proc, and names of users. What
//! the engine is handed is recorded, so a replay gives the same.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    host::Proc,
    os::{clock, users::local_names},
    source::completion::completed,
};
use orphand_core::{
    model::{BootTime, ProcessEvent},
    recognise::Rules,
};

/// The names of users are read again after so long.
const NAMES: Duration = Duration::from_secs(10);

/// Completes what the kernel side has cut short.
#[derive(Debug, Default)]
pub struct Completer {
    /// The names of users, and when they were read.
    users: Option<(BootTime, BTreeMap<u32, String>)>,
}

impl Completer {
    /// The name of a user. A file that was written meanwhile counts later: whoever sends many signals costs one reading.
    fn user(&mut self, uid: u32) -> Option<String> {
        let now = clock::now();
        if self.users.as_ref().is_none_or(|(read, _)| now.since(*read) > NAMES) {
            self.users = Some((now, local_names()));
        }
        self.users.as_ref().and_then(|(_, names)| names.get(&uid).cloned())
    }

    /// The same record, with the whole command line if the process has another role by it. Otherwise the cut one stays: a long
    /// command line that changes nothing is not worth its memory.
    pub fn complete(&mut self, procfs: &Proc, rules: &Rules, mut event: ProcessEvent) -> ProcessEvent {
        if let ProcessEvent::Signal { killer, .. } = &mut event {
            killer.user = killer.uid.and_then(|uid| self.user(uid));
        }
        let ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio } = event else { return event };
        // What a user's processes make this wait is bounded and charged there.
        let found = if image.argv_truncated { procfs.command_line(process) } else { None };
        let found = found.and_then(|found| completed(&image, &found)).filter(|found| {
            rules.role(found) != rules.role(&image)
                || rules.role_but_for_exemption(found) != rules.role_but_for_exemption(&image)
        });
        let image = found.unwrap_or(image);
        ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio }
    }
}

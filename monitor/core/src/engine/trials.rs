//! Programs on trial: a server is expected on their streams, and each of them may be it. A shell's start-up file runs programs
//! on the shell's own streams, and so does `npm ci && server`.
//!
//! Who began below a launcher or a shell is the server when the message has left the wire under it, and not before: what
//! waits is for whoever reads it. That the shell ends changes nothing.

use std::time::Duration;

use super::{
    Engine,
    agenda::Task,
    awaited::{self, Awaited, Said},
    first_messages::{LOOKS, hands_on},
};
use crate::{
    lineage::Node,
    model::{BootTime, FirstMessage, ProcessId},
};

/// How long a program that a shell ran in its own place must live to be taken for the server.
const TRIAL: Duration = Duration::from_millis(250);

impl Engine {
    /// Puts a program on trial that was started on streams on which this was said. `is_old`: it was there before the daemon.
    pub(super) fn try_out(&mut self, now: BootTime, id: ProcessId, said: Said, is_old: bool) {
        let Some(node) = self.world.node(id) else { return };
        let is_below = self.is_below_a_launcher(node);
        if !self.first_messages.contains_key(&id) && awaited::has_room_for(&self.first_messages, node) {
            self.first_messages.insert(id, Awaited::of(node, None));
        }
        let Some(awaited) = self.first_messages.get_mut(&id).filter(|a| a.trial.is_none()) else { return };
        awaited.below |= is_below;
        let asks = matches!(said, Said::Message(_)) || awaited.below;
        let until = if is_old { now } else { now + TRIAL };
        awaited.looks = if is_old { LOOKS } else { 0 };
        (awaited.said, awaited.trial) = (Some(said), Some(until));
        self.agenda.set(Task::FirstMessage(id), (!asks).then_some(until));
        if asks {
            self.ask_first_message(id);
        }
    }

    /// What waits for a program on trial; `pause`: until the next look.
    pub(super) fn answered_on_trial(
        &mut self,
        now: BootTime,
        id: ProcessId,
        message: &FirstMessage,
        pause: Duration,
    ) {
        let Some(awaited) = self.first_messages.get(&id) else { return };
        let (Some(said), Some(until)) = (awaited.said.clone(), awaited.trial) else { return };
        // It is still there, as far as anybody can tell, or may still come.
        let waits = match message {
            FirstMessage::Mcp { .. } | FirstMessage::Declared { .. } | FirstMessage::Unknown => true,
            FirstMessage::Nothing | FirstMessage::Over => may_come(&said, awaited.looks),
            _ => false,
        };
        if waits && awaited.below {
            self.agenda.set(Task::FirstMessage(id), Some(now + pause));
        } else if waits && now < until {
            self.agenda.set(Task::FirstMessage(id), Some(until.min(now + pause)));
        } else if self.world.node(id).is_some_and(|node| self.is_started_by_one(node)) {
            self.stop_waiting(id);
        } else {
            self.recognised_by_what_was_said(now, now, id, said);
        }
    }

    /// A message waits where settings declare a server: from now on it is seen whether it is read.
    pub(super) fn message_waits(&mut self, id: ProcessId, client: Option<&str>) {
        let Some(wires) = self.first_messages.get(&id).map(|awaited| awaited.wires) else { return };
        for awaited in self.first_messages.values_mut().filter(|awaited| awaited.wires == wires) {
            if let Some(said @ Said::Declared(_)) = &mut awaited.said {
                *said = Said::Message(client.map(str::to_owned));
            }
        }
    }

    pub(super) fn is_below_a_launcher(&self, node: &Node) -> bool {
        self.above_on_the_same_streams(node).any(hands_on)
    }
}

/// Whether the first message may still come: nobody has seen one. After so many looks it was read before the first of them.
pub(super) const fn may_come(said: &Said, looks: u32) -> bool {
    matches!(said, Said::Declared(_)) && looks < LOOKS
}

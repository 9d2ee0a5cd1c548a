//! Reads the first message on the standard input of a young process without taking it.

use super::Probe;
use orphand_core::model::{FirstMessage, OwnEnd};

impl Probe {
    /// What the first message on this standard input says.
    pub(super) fn first_message(&self, end: OwnEnd) -> FirstMessage {
        let _ = (&self.proc, end);
        FirstMessage::Unknown
    }
}

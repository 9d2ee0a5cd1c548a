//! The case of a server or an agent that may have been left behind: one state machine.
//!
//! [`Phase`] is the state of a case, with the data that belongs to it. [`step()`] is total: it answers every event in
//! every phase with the next phase and with actions. It is pure; the engine translates what happens into events and
//! carries out the actions. The reason why a case was opened is data ([`Reason`]), not a state machine of its own.
//! docs/architecture.md has the picture of the phases, and what follows from each event.
//!
//! Used by `world`, `verdict` and `engine` only.

mod ending;
mod event;
mod phase;
mod step;
#[cfg(test)]
mod tests;

pub use event::{Action, Announcement, Event, Facts, Finding, Outcome, Owner};
pub use phase::{Attempt, By, Cause, Failure, INSPECT_AGAIN, Pace, Phase, Reason, Stage, Verdict, Wish};
pub use step::step;

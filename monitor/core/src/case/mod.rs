//! The case of a server or an agent that may have been left behind: one state machine.
//!
//! [`Phase`] says how far a case has come and carries what belongs to it. [`step`] is total: every event is answered in every
//! phase, by the phase that follows and by actions. It is pure; the engine translates what happens into events and carries out
//! the actions. What may open a case is data ([`Reason`]), no machine of its own.
//!
//! ```text
//!            Suspected                Inspected: no doubt, no guard            Proceed
//!   Clear ------------> Grace -----+-----------------------------> Terminating: MainProcess -> Rest -> Kill
//!     ^                   |        | Inspected: a doubt                  |           |           |      |
//!     |                   |        v                                     | a doubt   | a guard   |      | nothing more
//!     | OwnerFound        |     Unproven <-------------------------------+           v           |      v can be done
//!     +-------------------+--------+-- Inspected: a guard ------------------------> Spared       +-> Failed
//! ```
//!
//! Used by `verdict` and `engine` only.

mod ending;
mod event;
mod pace;
mod phase;
mod step;
#[cfg(test)]
mod tests;

pub use event::{Action, Announcement, Event, Facts, Finding, Outcome, Owner, Record, Refusal};
pub use pace::{Backoff, INSPECT_AGAIN, Pace};
pub use phase::{Attempt, Cause, Failure, Kind, Phase, Reason, Step, Verdict};
pub use step::step;

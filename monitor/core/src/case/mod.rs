//! The case of a server or an agent that may have been left behind: one state machine.
//!
//! [`Phase`] is the state of a case, with the data that belongs to it. [`step()`] is total: it answers every event in
//! every phase with the next phase and with actions. It is pure; the engine translates what happens into events and
//! carries out the actions. The reason why a case was opened is data ([`Reason`]), not a state machine of its own.
//!
//! ```text
//! Clear ── Suspected ──> Grace ── deadline, Inspected ──┬── a doubt ──> Unproven ── last doubt gone ──┐
//!                                                       ├── a guard ──> Spared <─── a guard ──────────┤
//!                                                       └── neither ──────────────────────────────────┤
//!                                                                                                     v
//!          Failed <── nothing is left to try ── Kill <── Inspected ── Rest <── Inspected ── MainProcess
//!                                                                    (being ended)
//! ```
//!
//! | Event | What follows |
//! |---|---|
//! | `OwnerFound` in any phase | Clear |
//! | `Inspected`: a doubt, in any phase but Clear | Unproven; the procedure stops if it had begun |
//! | `Inspected`: a guard, in any phase but Clear | Spared; the procedure stops if it had begun |
//! | `Inspected`: neither | the next step of ending it |
//! | `SessionLives`, where the session had expired | Clear |
//! | `Asked` by a person | an inspection at once; doubts do not count then, guards do |
//! | `SignalRefused`, retryable | an inspection, then the same step again |
//! | `SignalRefused`, final | no further signal to that process; Failed, if it was the last one |
//! | `Ended` in any phase | the outcome: exited, cleared, exited as an orphan, or reaped |
//!
//! Used by `world`, `verdict` and `engine` only.

mod ending;
mod event;
mod phase;
mod step;
#[cfg(test)]
mod tests;

pub use event::{Action, Announcement, Event, Facts, Finding, Outcome, Owner};
pub use phase::{Attempt, By, Cause, Failure, INSPECT_AGAIN, Pace, Phase, Reason, Stage, Verdict};
pub use step::step;

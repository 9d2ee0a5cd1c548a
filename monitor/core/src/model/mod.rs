//! The data types of orphand: identities, times, kernel events, facts, notices, reports.
//!
//! These types hold plain data that the pure core and the daemon share. Nothing here does I/O.

mod alert;
mod checkup;
mod container;
mod control;
mod decision;
pub mod duration;
mod ending;
mod event;
mod event_subject;
mod exchange;
mod explained;
mod fact;
mod hints;
mod history;
mod id;
mod image;
mod inspection;
mod kernel_side;
mod leftover;
mod notice;
mod policy;
mod reasons;
pub mod redact;
mod report;
mod run;
pub mod scene;
mod session;
mod state;
pub mod text;
mod unit;
mod view;

pub use self::{
    alert::*, checkup::*, container::*, control::*, decision::*, ending::*, event::*, event_subject::*,
    exchange::*, explained::*, fact::*, hints::*, history::*, id::*, image::*, inspection::*, kernel_side::*,
    leftover::*, notice::*, policy::*, reasons::*, report::*, run::*, session::*, state::*, unit::*, view::*,
};

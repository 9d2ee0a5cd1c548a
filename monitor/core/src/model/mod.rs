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
mod event_kind;
mod event_subject;
mod exchange;
mod explained;
mod fact;
mod family;
mod first_message;
mod hints;
mod history;
mod id;
mod image;
mod inspection;
mod kernel_side;
mod leftover;
mod losses;
mod notice;
mod policy;
mod reached_by;
mod reasons;
pub mod redact;
mod report;
mod rule_kind;
mod run;
pub mod scene;
mod session;
mod share;
mod snapshot;
mod state;
pub mod text;
mod time;
mod timeline;
mod trace;
mod unit;
mod view;
mod whereabouts;
mod work;

pub use self::{
    alert::*, checkup::*, container::*, control::*, decision::*, ending::*, event::*, event_kind::*,
    event_subject::*, exchange::*, explained::*, fact::*, first_message::*, hints::*, history::*, id::*,
    image::*, inspection::*, kernel_side::*, leftover::*, losses::*, notice::*, policy::*, reached_by::*,
    reasons::*, report::*, rule_kind::*, run::*, session::*, share::*, snapshot::*, state::*, time::*,
    timeline::*, trace::*, unit::*, view::*, whereabouts::*, work::*,
};

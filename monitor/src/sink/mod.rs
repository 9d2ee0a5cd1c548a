//! Where notices and reports go. Sinks know the model, never a source nor the graph.
//!
//! A notice becomes a line by a [`Format`] ([`stream::Json`] or [`human::Text`]); an [`outlet::Outlet`] takes it
//! to its reader without ever holding up the daemon. A [`crate::model::Report`] is the answer of `scan` and `tree`.

mod about;
pub mod doctor;
pub mod history;
pub mod hook;
pub mod human;
pub mod journal;
pub mod metrics;
pub mod outlet;
pub mod outlets;
pub mod paint;
pub mod plan;
pub mod reaper;
pub mod report;
pub mod scan;
pub mod status;
pub mod stream;
mod table;
pub mod text;
pub mod tree;
pub mod wall;

use crate::model::{BootTime, Notice};

/// A way to write notices down.
pub trait Format: Send {
    /// Appends `notice`, whose cause happened at `at`, to `out` as whole lines.
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String);
}

impl Format for Box<dyn Format> {
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String) {
        self.as_mut().write(at, notice, out);
    }
}

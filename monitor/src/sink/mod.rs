//! Where notices and reports go. Sinks know the model, never a source nor the graph.
//!
//! A notice becomes a line by a [`Format`] ([`stream::Json`] or [`human::Text`]); an [`outlet::Outlet`] takes it
//! to its reader without ever holding up the daemon. A [`orphand_core::model::Report`] is the answer of `scan` and `tree`.

pub mod doctor;
pub mod history;
pub mod human;
pub mod journal;
pub mod metrics;
pub mod outlet;
pub mod outlets;
pub mod paint;
pub mod plan;
pub mod report;
pub mod scan;
pub mod status;
pub mod stream;
mod table;
pub mod tree;
pub mod wall;

use orphand_core::model::{BootTime, Notice, text};

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

//! Output: event stream, journal, metrics, and the texts of the commands. Sinks know the model, but neither
//! sources nor the process graph.
//!
//! A [`Format`] ([`stream::Json`] or [`human::Text`]) turns a notice into lines; an [`event_writer::EventWriter`] writes
//! them without ever blocking the daemon. A [`orphand_core::model::Report`] is the answer of `ps`.

pub mod doctor;
pub mod event_writer;
pub mod history;
pub mod human;
pub mod journal;
pub mod list;
pub mod metrics;
pub mod page;
pub mod paint;
pub mod plan;
pub mod report;
pub mod status;
pub mod stream;
pub mod table;
pub mod wall_clock;

use orphand_core::model::{BootTime, Notice, text};

pub trait Format: Send {
    /// Appends `notice` to `out` as whole lines. `at` is the time of its cause.
    fn write(&mut self, at: BootTime, notice: &Notice, out: &mut String);
}

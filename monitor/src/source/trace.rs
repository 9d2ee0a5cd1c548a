//! Recordings of everything the engine was told: what a bug report is made of.
//!
//! The format is NDJSON. The first line is a [`TraceHeader`](orphand_core::model::TraceHeader), `{"orphand_trace":1,..}`: settings, rules and clock.
//! Every other line is an [`TraceEntry`](orphand_core::model::TraceEntry), `{"at":12345,"input":"process",..}`: an input and when it was handed in.
//! Arguments of processes have their secrets redacted like everywhere; still a trace tells what runs on a host:
//! the file is readable by its owner only.

mod reader;
mod writer;

pub use reader::TraceReader;
pub use writer::TraceWriter;

#[cfg(test)]
mod tests;

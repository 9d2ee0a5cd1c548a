//! The list of servers: its rows, columns and words, which `ps` and `top` share, and the text of `ps`.
//!
//! One word for one state, one order (the worst first), one way to say what comes next. Pure.

mod column;
mod narrow;
mod rows;
mod sample;
mod text;
mod words;

pub use self::{
    column::Column,
    narrow::narrow,
    rows::{Arrangement, Entry, Kind, Row, entries, leftover_entries, rows},
    sample::Sample,
    text::{Layout, json, render, unseen},
    words::{command_line, cpu_time, from_before, reasons_to_stay, short, style, sum, why},
};

//! What this program does where it was started as a [helper].

use super::{containers, manager, settings};
use crate::helper::{self, Task};

/// The main function of a helper. Returns whether the answer could be written.
pub fn help() -> bool {
    helper::serve(|task, question, files| match task {
        Task::Engine => containers::help(question, &files),
        Task::Manager => manager::help(question, &files),
        Task::Settings => settings::help(question, files),
    })
}

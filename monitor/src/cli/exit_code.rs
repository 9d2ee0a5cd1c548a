//! The exit codes of `orphand`. A contract with scripts.

use std::process::{ExitCode as Code, Termination};

/// The result of running `orphand`. Wrong usage is 2: the command-line parser exits with it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    Done = 0,
    /// Failure; one line on standard error says what, why, and what to do.
    Failed = 1,
    /// `ps --exit-code` found an orphan.
    Found = 3,
    /// Nothing matched what was asked for.
    Unmatched = 4,
}

impl Termination for ExitCode {
    fn report(self) -> Code {
        Code::from(self as u8)
    }
}

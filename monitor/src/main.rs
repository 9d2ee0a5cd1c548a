//! The binary `orphand`.

use clap::Parser;
use nix::sys::signal::SigSet;
use orphand::{
    actuator::hook::runner,
    cli::{Cli, ExitCode, complete},
    commands, helper,
    os::journald,
    probe,
    source::selftest,
};
use orphand_core::model::text::{sanitise, with_causes};

fn main() -> ExitCode {
    helper::can_serve();
    let done = |done: bool| if done { ExitCode::Done } else { ExitCode::Failed };
    match std::env::args_os().nth(1).unwrap_or_default().to_str() {
        Some(selftest::CHILD_ARGUMENT) => {
            selftest::child();
            return ExitCode::Done;
        }
        Some(helper::ARGUMENT) => return done(probe::help()),
        Some(runner::ARGUMENT) => return done(runner::main()),
        _ => {}
    }
    // Whoever starts it may have blocked them, and a mask outlives execve(2): it would hear no SIGTERM.
    let _ = SigSet::empty().thread_set_mask();
    complete::answer();
    match Cli::try_parse().map_or_else(|asked| commands::help(&asked), commands::execute) {
        Ok(code) => code,
        Err(error) => {
            // In the journal the beginning of a line gives its priority, sd-daemon(3).
            let priority = if journald::is_at(std::io::stderr()) { "<3>" } else { "" };
            // It may contain names that another user chose.
            let error = with_causes(error.as_ref());
            let lines: Vec<_> = error.lines().map(sanitise).collect();
            commands::tell_aside(&format!("{priority}orphand: {}", lines.join("\n")));
            ExitCode::Failed
        }
    }
}

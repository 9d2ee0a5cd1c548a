//! What a shell offers at Tab beyond verbs and flags: agents, runs and processes, as the running daemon knows them. Without a daemon,
//! or without the right to ask it, nothing is offered and nothing is said.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::CommandFactory as _;
use clap_complete::{CompleteEnv, CompletionCandidate, env::Shells};

use super::Cli;
use crate::{
    config::{DEFAULT_PATH, SOCKET, Spared},
    control::client::Client,
};
use orphand_core::model::{
    Report, State,
    text::{quoted, sanitise},
};

/// The variable in which the script of a shell names the shell.
const VARIABLE: &str = "ORPHAND_COMPLETE";

const PATIENCE: Duration = Duration::from_millis(500);

/// Answers the script of a shell, and ends the program then. Returns if no such script has started it.
pub fn answer() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// The script for this shell, which asks this program at each Tab.
pub fn script(shell: &str) -> std::io::Result<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(shell) else { return Err(std::io::ErrorKind::Unsupported.into()) };
    shell.write_registration(VARIABLE, "orphand", "orphand", "orphand", &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

pub(super) fn agents() -> Vec<CompletionCandidate> {
    offered(|report| {
        let names = report.agents.iter().map(|one| one.agent.name.as_str());
        names.collect::<BTreeSet<_>>().into_iter().map(|name| (name.to_owned(), String::new())).collect()
    })
}

pub(super) fn generations() -> Vec<CompletionCandidate> {
    offered(|report| {
        let runs =
            report.agents.iter().filter_map(|one| Some((one.agent.generation?, one.agent.name.as_str())));
        let runs: BTreeSet<_> = runs.collect();
        runs.into_iter().map(|(run, name)| (run.to_string(), name.to_owned())).collect()
    })
}

pub(super) fn states() -> Vec<CompletionCandidate> {
    candidates(State::ALL.iter().map(|state| (state.word().to_owned(), String::new())).collect())
}

/// The exemptions that `orphand spare` made.
pub(super) fn spared() -> Vec<CompletionCandidate> {
    let rules = Spared::read(Path::new(DEFAULT_PATH)).map(|spared| spared.rules().to_vec());
    let names = rules.unwrap_or_default().into_iter().map(|rule| (rule.name, String::new()));
    candidates(names.collect())
}

/// The first processes of servers, with the names and states of these.
pub(super) fn servers() -> Vec<CompletionCandidate> {
    offered(|report| {
        let servers = report.servers().filter_map(|(_, one)| {
            let first = one.server.processes.first()?;
            Some((first.pid.to_string(), format!("{}, {}", one.server.name, one.state)))
        });
        servers.collect()
    })
}

/// What the daemon's report offers, and what is said beside it.
fn offered(what: impl Fn(&Report) -> Vec<(String, String)>) -> Vec<CompletionCandidate> {
    // What is completed is the rest of the command line of this program: the socket may be in it.
    let socket = std::env::args_os().skip_while(|word| word != "--socket").nth(1);
    let socket = socket.map_or_else(|| SOCKET.into(), PathBuf::from);
    let Ok(status) = Client::new(&socket).within(PATIENCE).status(false) else { return Vec::new() };
    candidates(what(&status.report))
}

/// Bash puts a word into the command line as it is, and any user may call a program `$(reboot)`: only plain words are offered.
fn candidates(all: Vec<(String, String)>) -> Vec<CompletionCandidate> {
    let is_plain = |(value, _): &(String, String)| quoted(value) == *value;
    let candidate = |(value, help): (String, String)| {
        let help = (!help.is_empty()).then(|| sanitise(&help).into_owned().into());
        CompletionCandidate::new(value).help(help)
    };
    all.into_iter().filter(is_plain).map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_carry_out_is_not_offered() {
        let names =
            ["claude", "gateway@1.service", "x$(reboot)", "`id`", "a;id", "a b", "\u{1b}[2J", "größe"];
        let offered = candidates(names.map(|name| (name.to_owned(), String::new())).to_vec());
        let offered: Vec<_> = offered.iter().map(|one| one.get_value().to_string_lossy()).collect();
        assert_eq!(offered, ["claude", "gateway@1.service"]);
    }
}

//! The command line: verbs, flags, help texts. The verbs are carried out elsewhere.
//!
//! Every verb that is listed works. Flags are optional where the configuration file can say the same: flags
//! beat the file, the file beats the defaults.

pub mod complete;
mod config;
mod decide;
mod events;
mod exit_code;
mod explain;
mod help;
mod history;
mod log_stream;
pub mod logging;
pub mod moment;
pub mod pages;
mod places;
mod ps;
mod release;
mod spare;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::{ArgValueCandidates, Shell};

pub use self::{
    config::Config,
    decide::{Mode, ModeWord, Pause, Resume},
    events::Events,
    exit_code::ExitCode,
    explain::Explain,
    history::History,
    places::Places,
    ps::Ps,
    release::Release,
    spare::Spare,
};
use crate::config::Listen;
use orphand_core::model::{Asked, Found, MemberCount, RingSize, SetsidHook, duration::parse_duration};

/// The lock file, which prevents a second daemon.
pub const LOCK: &str = "/run/orphand/lock";

/// Finds MCP stdio servers that outlived the AI agent that started them, proves it by kernel events, and ends
/// them safely.
#[derive(Debug, Parser)]
#[command(name = "orphand", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = help::EXAMPLES, after_long_help = help::LONG_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Watch this host: stream events, end orphans
    #[command(long_about = help::LONG_RUN)]
    Run(Run),
    /// List servers with their state, worst first: agent, processes, memory, CPU, age, what is next
    #[command(long_about = help::LONG_PS)]
    Ps(Ps),
    /// Show whether the running daemon is well: mode, since when, totals, what is next, losses
    Status(Status),
    /// Say of a process what it is taken for and why, who can reach it, and what happens next
    #[command(long_about = help::LONG_EXPLAIN)]
    Explain(Explain),
    /// Watch servers and orphans in a live view, and end some
    Top(crate::top::Flags),
    /// End orphans now
    #[command(long_about = help::LONG_REAP)]
    Reap(Reap),
    /// Say that you are done with a server of yours: it is ended unless somebody uses it
    #[command(long_about = help::LONG_RELEASE)]
    Release(Release),
    /// Make the running daemon read its configuration again
    #[command(long_about = help::LONG_RELOAD)]
    Reload(Reload),
    /// End nothing for a while: what is left behind is judged and reported, and stays
    #[command(long_about = help::LONG_PAUSE)]
    Pause(Pause),
    /// End the pause
    #[command(long_about = help::LONG_RESUME)]
    Resume(Resume),
    /// Choose whether orphans are ended, whatever the configuration says, or show that
    #[command(long_about = help::LONG_MODE)]
    Mode(Mode),
    /// Exempt a program, a unit or a user: what runs there is judged and reported, and never ended
    #[command(long_about = help::LONG_SPARE)]
    Spare(Spare),
    /// Show events: what was told since a time, and with --follow what happens now
    #[command(long_about = help::LONG_EVENTS)]
    Events(Events),
    /// Show past runs, orphans, signals and freed memory from the daemon's store
    #[command(long_about = help::LONG_HISTORY)]
    History(History),
    /// Check the kernel, the rights, and the units that host agents
    #[command(long_about = help::LONG_DOCTOR)]
    Doctor(Doctor),
    /// Replay a recorded trace
    #[command(long_about = help::LONG_REPLAY)]
    Replay(Replay),
    /// Check or show the configuration, or print a template
    #[command(subcommand)]
    Config(Config),
    /// Print completions for a shell
    #[command(after_help = "Example:
  orphand completions bash > /etc/bash_completion.d/orphand")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print a manual page
    #[command(after_help = "Examples:
  orphand man | man -l -
  orphand man config | man -l -     every key of the configuration
  orphand man --dir ./man           one page per verb, and orphand.toml.5")]
    Man {
        /// The page
        #[arg(value_name = "PAGE", default_value = "orphand")]
        page: pages::Page,
        /// Write all pages into this directory instead
        #[arg(long, value_name = "DIR", conflicts_with = "page")]
        dir: Option<PathBuf>,
    },
}

/// The flags of `orphand run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  sudo orphand run                                   text on a terminal, JSON into a pipe
  sudo orphand run --observe | jq .event             judge, send no signals
  sudo orphand run --grace 30s --record bug.orphtrace")]
pub struct Run {
    /// Judge, but never send a signal
    #[arg(long)]
    pub observe: bool,
    /// What was there before the first start on this host: left to a person, or ended like the rest [default: ask]
    #[arg(long, value_name = "WHAT")]
    pub found: Option<WhatWasFound>,
    /// Output format of events [default: text on a terminal, otherwise json]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Time from the exit of an owner to the verdict on its servers [default: 10s]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// Time from SIGTERM to SIGKILL [default: 5s]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub term_timeout: Option<Duration>,
    /// End servers that run as another user than their owner, too
    #[arg(long, hide = true)]
    pub other_uids: bool,
    /// The time limit of a run of a hook
    #[arg(long, value_name = "DUR", value_parser = parse_duration, default_value = "10s", hide = true)]
    pub hook_timeout: Duration,
    /// Address for the page and metrics over HTTP, or `none` [default: 127.0.0.1:9477]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<Listen>,
    /// Group whose members may use the control socket: they can end all that orphand may end, other users' servers, too
    #[arg(long, value_name = "GROUP")]
    pub socket_group: Option<String>,
    /// Program that runs for events, an absolute path
    #[arg(long, value_name = "PATH")]
    pub hook: Option<PathBuf>,
    /// Record all inputs to FILE, for `orphand replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// How calls of setsid(2) are observed [default: auto]
    #[arg(long, value_name = "HOOK")]
    pub setsid: Option<Setsid>,
    /// Size of the ring buffer between kernel and daemon, a power of two such as 256K [default: 2M]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub ring_size: Option<RingSize>,
    /// How many processes below agents can be followed at once, at most half of them of one user [default: as many as can live]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub members: Option<MemberCount>,
    /// The user that the registry of sessions runs as, if that is a person: a password is sent to it
    #[arg(long, value_name = "UID", hide_short_help = true)]
    pub registry_user: Option<u32>,
    /// The lock file, which prevents a second daemon
    #[arg(long, value_name = "PATH", default_value = LOCK, hide = true)]
    pub lock: PathBuf,
    /// Log the messages of the eBPF programs
    #[arg(long, hide_short_help = true)]
    pub debug_bpf: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// The flags of `orphand status`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand status
  orphand status --pss                                  also proportional memory: what the host would regain
  orphand status --json | jq .totals")]
pub struct Status {
    /// Also measure proportional memory (slow: 10 us per resident megabyte)
    #[arg(long)]
    pub pss: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// The flags of `orphand reload`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand config check && sudo orphand reload
  sudo orphand reload --json | jq .later               keys that take effect only at the next start")]
pub struct Reload {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// The flags of `orphand reap`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand reap --dry-run                           what would be ended
  sudo orphand reap --agent claude --yes                the orphans of claude, without asking
  sudo orphand reap --agent bot.service --generation 3  those of one run
  sudo orphand reap 4711 1234@229468                    these two
  sudo orphand reap 4711 --include-unproven             this server, although somebody may still use it
  sudo orphand reap 4711 --include-active               this server, although its owner is alive
  sudo orphand reap --leftovers                         background shells, development servers and the like")]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub struct Reap {
    /// Only servers with these processes, by process number or by the id of the server
    #[arg(value_name = "PID|ID", value_parser = target, add = ArgValueCandidates::new(complete::servers))]
    pub targets: Vec<Asked>,
    /// Only servers of agents of this name, or of this unit
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::agents))]
    pub agent: Option<String>,
    /// Only servers of this run
    #[arg(long, value_name = "N", add = ArgValueCandidates::new(complete::generations))]
    pub generation: Option<u64>,
    /// Also servers whose owner is alive
    #[arg(long)]
    pub include_active: bool,
    /// Also unproven servers: the owner is gone, and somebody may still use them
    #[arg(long)]
    pub include_unproven: bool,
    /// Duplicates instead: servers of which their living owner has a newer one with the same arguments and directory
    #[arg(long, conflicts_with_all = ["include_active", "include_unproven"])]
    pub duplicates: bool,
    /// Leftovers instead: what agents that have ended left behind and that is no server, with all that is below it
    #[arg(long, conflicts_with_all = ["include_active", "include_unproven", "duplicates"])]
    pub leftovers: bool,
    /// Show what would be ended, and end nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Print JSON (needs --yes or --dry-run)
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// A process number or an id.
fn target(typed: &str) -> Result<Asked, String> {
    let asked: Asked = typed.parse().unwrap_or_else(|never| match never {});
    match asked {
        Asked::Name(_) => Err("give a process number or the id of a server, PID@START".to_owned()),
        asked => Ok(asked),
    }
}

/// The flags of `orphand doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand doctor
  sudo orphand doctor --json | jq '.units[] | select(.advice) | .unit.name'
  sudo orphand doctor --json | jq '.units[] | select(.blind) | .blind'")]
pub struct Doctor {
    /// The lock file, which prevents a second daemon
    #[arg(long, value_name = "PATH", default_value = LOCK, hide = true)]
    pub lock: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// The flags of `orphand replay`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  orphand replay bug.orphtrace
  orphand replay --format json bug.orphtrace | jq 'select(.event == \"orphan_detected\")'")]
pub struct Replay {
    /// The trace that `orphand run --record` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Output format of events [default: text on a terminal, otherwise json]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
}

/// The output format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object per line
    Json,
    /// One readable line per event
    Text,
}

impl Format {
    /// The given format; without one, text on a terminal and JSON otherwise.
    pub fn or_default(asked: Option<Self>, terminal: bool) -> Self {
        asked.unwrap_or(if terminal { Self::Text } else { Self::Json })
    }
}

/// What becomes of what was there before the first start, as a value of `--found`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhatWasFound {
    /// Reported, and ended only by a person: `orphand reap`
    Ask,
    /// Ended like the rest
    End,
}

impl From<WhatWasFound> for Found {
    fn from(written: WhatWasFound) -> Self {
        match written {
            WhatWasFound::Ask => Self::Ask,
            WhatWasFound::End => Self::End,
        }
    }
}

/// How setsid(2) is observed, as a value of `--setsid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Setsid {
    /// By fentry if it loads, otherwise by the tracepoint
    Auto,
    /// By fentry, which costs nothing
    Fentry,
    /// By a tracepoint, which makes every system call of the host some 30 ns slower
    Tracepoint,
    /// Not at all; sessions are known from forks, execs and /proc
    None,
}

impl From<Setsid> for SetsidHook {
    fn from(written: Setsid) -> Self {
        match written {
            Setsid::Auto => Self::Auto,
            Setsid::Fentry => Self::Fentry,
            Setsid::Tracepoint => Self::Tracepoint,
            Setsid::None => Self::None,
        }
    }
}

#[cfg(test)]
mod tests;

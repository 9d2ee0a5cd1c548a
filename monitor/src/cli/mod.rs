//! The command line: verbs, flags, help texts. The verbs are carried out elsewhere.
//!
//! Every verb that is listed works. Flags are optional where the configuration file can say the same: flags
//! beat the file, the file beats the defaults.

pub mod complete;
mod help;
pub mod logging;
pub mod moment;
pub mod pages;
mod verbs;

use std::{
    path::PathBuf,
    process::{ExitCode as Code, Termination},
    time::Duration,
};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use clap_complete::Shell;

use crate::{
    config::{self, ConfigErrors, Listen},
    host::Scope,
};
use orphand_core::model::{Found, MemberCount, RingSize, SetsidHook, duration::parse_duration};

pub use self::verbs::{
    Config, Doctor, Events, Explain, History, Mode, Pause, Ps, Reap, Release, Replay, Spare, Status,
};

/// The lock file, which prevents a second daemon.
pub const LOCK: &str = "/run/orphand/lock";

/// Finds MCP stdio servers that outlived the AI agent that started them, proves it by kernel events, and ends
/// them safely.
#[derive(Debug, Parser)]
#[command(name = "orphand", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = help::EXAMPLES, after_long_help = help::LONG_HELP)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

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
    #[command(long_about = help::LONG_RELOAD, after_help = help::RELOAD_EXAMPLES)]
    Reload(Common),
    /// End nothing for a while: what is left behind is judged and reported, and stays
    #[command(long_about = help::LONG_PAUSE)]
    Pause(Pause),
    /// End the pause
    #[command(long_about = help::LONG_RESUME, after_help = "Example:\n  sudo orphand resume")]
    Resume(Common),
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
    #[arg(long, value_name = "WHAT", value_parser = one_of(FOUND))]
    pub found: Option<Found>,
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
    #[arg(long, value_name = "HOOK", value_parser = one_of(SETSID))]
    pub setsid: Option<SetsidHook>,
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
    #[command(flatten)]
    pub places: Places,
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

/// What `--found` takes.
const FOUND: &[Word<Found>] = &[
    ("ask", Found::Ask, "Reported, and ended only by a person: `orphand reap`"),
    ("end", Found::End, "Ended like the rest"),
];

/// What `--setsid` takes.
const SETSID: &[Word<SetsidHook>] = &[
    ("auto", SetsidHook::Auto, "By fentry if it loads, otherwise by the tracepoint"),
    ("fentry", SetsidHook::Fentry, "By fentry, which costs nothing"),
    (
        "tracepoint",
        SetsidHook::Tracepoint,
        "By a tracepoint, which makes every system call of the host some 30 ns slower",
    ),
    ("none", SetsidHook::None, "Not at all; sessions are known from forks, execs and /proc"),
];

/// A word, what it means, and its help.
type Word<T> = (&'static str, T, &'static str);

/// Takes one of these words.
fn one_of<T: Clone + Send + Sync + 'static>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T> {
    let known = words.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(known).try_map(move |typed| {
        let meant = words.iter().find(|(word, ..)| *word == typed).map(|(_, meant, _)| meant.clone());
        meant.ok_or("unknown")
    })
}

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

/// What most verbs share: JSON or text, and whom to ask.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub places: Places,
}

/// Flags beat the file, the file beats the defaults.
#[derive(Args, Clone, Debug, Default)]
pub struct Places {
    /// The configuration [default: /etc/orphand/config.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The daemon's control socket [default: /run/orphand/control.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The directory of the daemon's store [default: /var/lib/orphand]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Judge and signal only what is below control groups whose names begin so: for tests
    #[arg(long, value_name = "NAME", hide = true)]
    pub below: Option<Scope>,
}

impl Places {
    /// The configuration with these flags.
    pub fn load(&self) -> Result<config::Config, ConfigErrors> {
        config::Config::load(self.config.as_deref()).map(|config| self.applied(config))
    }

    /// These flags over a configuration.
    pub fn applied(&self, config: config::Config) -> config::Config {
        config::Config {
            socket: self.socket.clone().unwrap_or(config.socket),
            state_dir: self.state_dir.clone().unwrap_or(config.state_dir),
            ..config
        }
    }

    /// Whether a store is named and no daemon is: then the store is read, and no daemon asked.
    pub const fn names_store_alone(&self) -> bool {
        self.state_dir.is_some() && self.socket.is_none()
    }
}

#[cfg(test)]
mod tests;

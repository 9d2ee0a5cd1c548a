//! The command line: verbs, flags, help texts. The verbs are carried out elsewhere.
//!
//! Every verb that is listed works. Flags are optional where the configuration file can say the same: flags
//! beat the file, the file beats the defaults.

pub mod complete;
pub mod logging;
pub mod moment;
pub mod pages;
mod verbs;

use std::{
    path::{Path, PathBuf},
    process::{ExitCode as Code, Termination},
    time::Duration,
};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser},
    value_parser,
};
use clap_complete::Shell;

use crate::{
    config::{self, Listen, Mistake, SOCKET, STATE_DIR},
    host::Scope,
};
use orphand_core::model::{Found, MEMBERS, SetsidHook, duration::parse_duration, parse_ring_size};

pub use self::verbs::{
    Config, Doctor, Events, Explain, History, Mode, Pause, Ps, Reap, Release, Replay, Spare, Status,
};

/// The lock file, which prevents a second daemon.
pub const LOCK: &str = "/run/orphand/lock";

/// Finds MCP stdio servers that outlived the AI agent that started them, proves it by kernel events, and ends
/// them safely.
#[derive(Debug, Parser)]
#[command(name = "orphand", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = pages::EXAMPLES, after_long_help = pages::LONG_HELP)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::doc_markdown, reason = "help texts are plain text")]
pub enum Verb {
    /// Watch this host: stream events, end orphans
    ///
    /// Needs root, or the capabilities CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_KILL and CAP_DAC_READ_SEARCH.
    /// Events go to standard output, logs to standard error. SIGTERM and SIGINT stop it and leave all other processes alone.
    Run(Run),
    /// List servers with their state, worst first: agent, processes, memory, CPU, age, what is next
    ///
    /// The states: orphan (nobody can use it any more), ending (it is being ended), kept (an orphan that stays because of a guard), unproven
    /// (it was left behind, and somebody may still use it), suspect (it was left behind, and its grace is not over), live. It ends nothing.
    ///
    /// Asks the running daemon, which has witnessed who created whom. Without one it looks through /proc once, and says what that cannot
    /// know. Without root it sees your own processes well and those of others in part. Ends with status 4 if --state or --agent match
    /// nothing.
    Ps(Ps),
    /// Show whether the running daemon is well: mode, since when, totals, what is next, losses
    Status(Status),
    /// Say of a process what it is taken for and why, who can reach it, and what happens next
    ///
    /// Takes a process number, the id of a server (PID@START), or the name of a server or an agent. Asks the running daemon, which
    /// has witnessed who created whom; without one it looks through /proc once, and says what that cannot know, as it does with --state-dir alone. Of what has ended it
    /// says from the store who ended it, when, and why. Ends with status 4 if nothing matched.
    Explain(Explain),
    /// Watch servers and orphans in a live view, and end some
    Top(crate::top::Flags),
    /// End orphans now
    ///
    /// Shows the servers it would end, asks, ends exactly those, waits, and reports what became of them. A guard protects a server
    /// whoever asks. An unproven server (it was left behind, but somebody may still use it; the plan says why) is no orphan: it is
    /// included only with --include-unproven. The running daemon does the work. Without a daemon it is done from
    /// the evidence in /proc alone.
    ///
    /// With --duplicates it shows and ends further servers of one identity (rule, arguments, working directory) of one living owner; the
    /// newest of each stays. Another thread or conversation may be using them: one that is ended takes its tools away.
    ///
    /// Ends with status 1 if something stays that was to be ended, and with status 4 if nothing is what was asked for.
    Reap(Reap),
    /// Say that you are done with a server of yours: it is ended unless somebody uses it
    ///
    /// For a manager that lives on and keeps the pipes of its servers open. The server has the time of abandoned_grace (30 s). Then it
    /// is judged like one whose agent has ended, and what its agent still holds of it counts only if the server was used since. Another
    /// process that can reach it keeps it. A use takes the release back; then it can be released again.
    ///
    /// Needs no root: everybody may release servers all of whose processes are his own, and root any. The daemon forgets releases when it
    /// ends. Ends with status 1 and one line if a server belongs to somebody else (nothing is released then), and with status 4 if nothing is
    /// what was asked for.
    Release(Release),
    /// Make the running daemon read its configuration again
    ///
    /// The same as SIGHUP to a daemon without a terminal, but it reports the result. A configuration with a mistake changes nothing: the old one stays in effect,
    /// the line says why, and the status is 1. Rules also apply to what is followed already. Addresses, sockets, the store and the
    /// ring change at the next start only; the answer names such keys.
    #[command(after_help = pages::RELOAD_EXAMPLES)]
    Reload(Common),
    /// End nothing for a while: what is left behind is judged and reported, and stays
    ///
    /// The running daemon goes on judging and reporting, and sends no signal: not even the SIGKILL to a server that was asked to end
    /// already. `orphand reap` still ends what a person asks for. A pause is remembered if the daemon or the host is started again, and
    /// ends by itself after DUR. What was left behind meanwhile is then inspected anew before anything is done about it. A second pause
    /// replaces the first.
    ///
    /// Ends with status 1 if the daemon cannot remember the pause: then it is in effect until the daemon ends.
    Pause(Pause),
    /// End the pause
    ///
    /// What was left behind meanwhile is inspected anew, and ended if nobody can use it. A mode that was chosen with `orphand mode`
    /// holds again. Without a pause nothing changes.
    #[command(after_help = "Example:\n  sudo orphand resume")]
    Resume(Common),
    /// Choose whether orphans are ended, whatever the configuration says, or show that
    ///
    /// A mode that a person chose beats `observe` of the configuration, also after a restart and a reload, until `orphand mode
    /// configured`. A pause beats a chosen mode. `orphand run --observe` beats everything: such a daemon refuses `enforce`.
    ///
    /// Without a mode it shows what is in effect, and who decided it if a person did. Ends with status 1 if the daemon refuses, or cannot remember it.
    Mode(Mode),
    /// Exempt a program, a unit or a user: what runs there is judged and reported, and never ended
    ///
    /// Writes a rule into conf.d/spared.toml beside the configuration that the daemon reads, checks the configuration with it as
    /// `orphand config check` does, and makes the daemon read it. What it matches is judged and reported, and never ended by orphand,
    /// with all that it starts.
    ///
    /// A process number or a name is turned into a rule about the program: its package, module, script or name; a script by its path as it
    /// was written, and by its whole path. So every process of that program is spared, and it is spared after a restart, too. --remove
    /// takes an exemption back by its name, --list shows all.
    ///
    /// Ends with status 1 if the configuration would be wrong (then nothing is changed) or the daemon does not take it, and with status 4
    /// if nothing matched.
    Spare(Spare),
    /// Show events: what was reported since a time, and with --follow what happens now
    ///
    /// Text on a terminal; into a pipe the lines that `orphand run` writes. With --follow it goes on with what happens, and when the
    /// daemon restarts it says so on standard error and continues where it was. What a slow reader misses is reported by a `lost` line.
    /// Without a daemon, or with --state-dir alone, it shows what is kept in the state directory; --follow then ends with status 1.
    ///
    /// Times are local: 14:03 (the latest one), yesterday 14:03, 2026-11-23 14:03, or how long ago: 90m, 24h, 7d.
    Events(Events),
    /// Show past runs, orphans, signals and freed memory from the daemon's store
    ///
    /// Prints a line for each run of an agent: what it left behind, what was ended, how much memory that freed. Then come the orphans
    /// that are still there or could not be ended, and the latest of the rest. Works with a running daemon and without one. With
    /// --state-dir alone no daemon is asked. Ends with status 4 if nothing matched.
    ///
    /// With --at or --until it lists each signal that the daemon sent in that time: to which process, which one, on which verdict and
    /// evidence. If it sent none, it says so. --leaks shows the runs that left orphans behind, most memory first.
    ///
    /// Times are local: 14:03 (the latest one), yesterday 14:03, 2026-11-23 14:03, or how long ago: 90m, 24h, 7d.
    History(History),
    /// Check the kernel, the rights, and the units that host agents
    ///
    /// Checks rights, kernel, state directory and daemon. Where no daemon runs, it loads the kernel programs as the daemon does (which
    /// mounts tracefs if they need it) and removes them again. Then it asks the service managers (the host's, users' and those of
    /// containers) how they stop each unit that hosts an agent or what agents left behind. For KillMode=process and none it prints the
    /// drop-in that corrects the unit, ready for `systemctl edit`. It changes nothing else.
    ///
    /// `ok` is well, `note` is good to know, `wrong` must be corrected, `?` could not be found out. Ends with status 1 only if something
    /// is known to be wrong. In JSON, `blind` of a unit says what could not be found out.
    Doctor(Doctor),
    /// Replay a recorded trace
    ///
    /// Prints the events that the daemon emitted when the trace was recorded, but those of what only a masked word shows (a script with
    /// an unusual name). Needs no privilege and touches no process.
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
    /// What was there before the first start on this host, or before what was known was lost: left to a person, or ended like the rest [default: ask]
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
    /// Program that runs for events
    #[arg(long, value_name = "PATH")]
    pub hook: Option<PathBuf>,
    /// Record all inputs to FILE, for `orphand replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// How calls of setsid(2) and bind(2) are observed [default: auto]
    #[arg(long, value_name = "HOOK", value_parser = one_of(SETSID))]
    pub setsid: Option<SetsidHook>,
    /// Size of the ring buffer between kernel and daemon, a power of two such as 256K [default: 2M]
    #[arg(long, value_name = "BYTES", value_parser = parse_ring_size, hide_short_help = true)]
    pub ring_size: Option<u32>,
    /// How many processes below agents can be followed at once, at most half of them of one user [default: as many as can live]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(MEMBERS), hide_short_help = true)]
    pub members: Option<u32>,
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
    (
        "none",
        SetsidHook::None,
        "Not at all; sessions are known from forks, execs and /proc, who wanted a port is not",
    ),
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

/// A path that a unix socket can have.
fn socket(path: PathBuf) -> Result<PathBuf, String> {
    const LONGEST: usize = 107;
    match path.as_os_str().len() {
        ..=LONGEST => Ok(path),
        bytes => Err(format!("a socket's path has at most {LONGEST} bytes, and this one {bytes}")),
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

#[derive(Args, Clone, Debug, Default)]
pub struct Places {
    /// The configuration [default: /etc/orphand/config.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The daemon's control socket [default: /run/orphand/control.sock]
    #[arg(long, value_name = "PATH", value_parser = PathBufValueParser::new().try_map(socket))]
    pub socket: Option<PathBuf>,
    /// The directory of the daemon's store [default: /var/lib/orphand]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Judge and signal only what is below control groups whose names begin so: for tests
    #[arg(long, value_name = "NAME", hide = true)]
    pub below: Option<Scope>,
}

impl Places {
    /// The configuration. Only the daemon and who looks for himself need it: a mistake there keeps nobody from asking the daemon.
    pub fn load(&self) -> Result<config::Config, Box<Mistake>> {
        config::Config::load(self.config.as_deref())
    }

    pub fn socket(&self) -> &Path {
        self.socket.as_deref().unwrap_or(SOCKET.as_ref())
    }

    pub fn state_dir(&self) -> &Path {
        self.state_dir.as_deref().unwrap_or(STATE_DIR.as_ref())
    }

    /// Whether a store is named and no daemon is: then the store is read, and no daemon asked.
    pub const fn names_store_alone(&self) -> bool {
        self.state_dir.is_some() && self.socket.is_none()
    }
}

#[cfg(test)]
mod tests;

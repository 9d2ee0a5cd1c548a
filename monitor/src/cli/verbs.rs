//! The flags of the verbs, but for those of `run`.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;

use super::{Common, Format, LOCK, Places, Word, complete, moment::Moment, one_of};
use crate::sink::list::Column;
use orphand_core::model::{Asked, Decision, Mode as RunMode, State, duration::parse_period};

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand ps
  sudo orphand ps --sort mem -o wide                    what costs most, and why it is there
  sudo orphand ps -t --agent claude                     the runs of claude, with all processes
  orphand ps --no-daemon --json | jq .totals
  orphand ps --exit-code > /dev/null || echo 'orphans, or a failure'")]
pub struct Ps {
    /// Show a tree: agents, runs, servers, processes
    #[arg(short, long)]
    pub tree: bool,
    /// Show it again and again, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
    /// Look through /proc once, even if a daemon runs
    #[arg(long)]
    pub no_daemon: bool,
    /// What comes first
    #[arg(long, value_name = "COLUMN", default_value = "state")]
    pub sort: Column,
    /// Only servers in these states: orphan (also those that are ending or kept), ending, kept, unproven,
    /// suspect, live; or what ended agents left that is no server: leftover
    #[arg(long, value_name = "STATE", value_delimiter = ',', add = ArgValueCandidates::new(complete::states))]
    pub state: Vec<State>,
    /// Only servers of agents of this name, or of this systemd unit
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::agents))]
    pub agent: Option<String>,
    /// `wide` cuts nothing, and says why and by which command
    #[arg(short, value_name = "FORMAT")]
    pub output: Option<Width>,
    /// Print JSON, with totals
    #[arg(long)]
    pub json: bool,
    /// Exit with status 3 if there is an orphan (an unproven server is not one)
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub places: Places,
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Width {
    /// Everything
    Wide,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand status
  sudo orphand status --pss                             also proportional memory: what the host would regain
  sudo orphand status --json | jq .totals")]
pub struct Status {
    /// Also measure proportional memory (slow: 10 us per resident megabyte)
    #[arg(long)]
    pub pss: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand reap --dry-run                           what would be ended
  sudo orphand reap --agent claude --yes                the orphans of claude, without asking
  sudo orphand reap --agent bot.service --generation 3  those of one run
  sudo orphand reap 4711 1234@229468                    these two
  sudo orphand reap 4711 --include-unproven             this server, although somebody may still use it
  sudo orphand reap 4711 --include-active               this server, although its owner is alive
  sudo orphand reap --leftovers                         background shells, development servers and the like")]
#[command(group(ArgGroup::new("without a question").args(["yes", "dry_run"]).multiple(true)))]
pub struct Reap {
    /// Only servers with these processes, by process number, by the id of the server, or those of this name
    #[arg(value_name = "PID|ID|NAME", add = ArgValueCandidates::new(complete::servers))]
    pub targets: Vec<Asked>,
    /// Only servers of agents of this name, or of this unit
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::agents))]
    pub agent: Option<String>,
    /// Only servers of this run
    #[arg(long, value_name = "N", add = ArgValueCandidates::new(complete::generations))]
    pub generation: Option<u64>,
    /// Also servers whose owner is alive, or whose grace period is not over
    #[arg(long)]
    pub include_active: bool,
    /// Also unproven servers: they were left behind, and somebody may still use them
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
    #[arg(long, requires = "without a question")]
    pub json: bool,
    #[command(flatten)]
    pub places: Places,
}

/// A process number or an id.
fn target(typed: &str) -> Result<Asked, String> {
    match Asked::from(typed) {
        Asked::Name(_) => Err("give a process number or the id of a server, PID@START".to_owned()),
        asked => Ok(asked),
    }
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand doctor
  sudo orphand doctor --json | jq '.units[] | select(.advice) | .unit.name'
  sudo orphand doctor --json | jq '.units[] | select(.blind) | .blind'")]
pub struct Doctor {
    /// The lock file, which prevents a second daemon
    #[arg(long, value_name = "PATH", default_value = LOCK, hide = true)]
    pub lock: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  orphand replay bug.orphtrace
  orphand replay --json bug.orphtrace | jq 'select(.event == \"orphan_detected\")'")]
pub struct Replay {
    /// The trace that `orphand run --record` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub lines: Lines,
}

/// How events are written.
#[derive(Args, Debug)]
pub struct Lines {
    /// Output format [default: text on a terminal, otherwise json]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Print JSON, one object a line: --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

impl Lines {
    pub fn format(&self) -> Option<Format> {
        if self.json { Some(Format::Json) } else { self.format }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand explain 4711
  sudo orphand explain context7                         the servers of this name
  sudo orphand explain 4711 --report                    to paste into an issue
  sudo orphand explain 4711@229468 --json | jq '.explained[].reached_by'")]
pub struct Explain {
    /// A process number, the id of a server, or the name of a server or an agent
    #[arg(value_name = "PID|NAME|ID", add = ArgValueCandidates::new(complete::servers))]
    pub process: String,
    /// Print a bug report for the authors of a server or a client that leaks: no path, no argument, no name of a user
    #[arg(long, conflicts_with = "json")]
    pub report: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  orphand release 4711                                  the server that has this process
  orphand release 4711@229468 4712@229470 --json
  orphand release --session 0b8c8f2e                    all servers of a session")]
pub struct Release {
    /// Servers with these processes, by process number or by the id of the server
    #[arg(value_name = "PID|ID", value_parser = target, required_unless_present = "session")]
    #[arg(add = ArgValueCandidates::new(complete::servers))]
    pub targets: Vec<Asked>,
    /// The servers of this session, by its whole id
    #[arg(long, value_name = "ID", conflicts_with = "targets")]
    pub session: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand spare 4711                               the program of this process, wherever it runs
  sudo orphand spare inventory                          the servers of this name, as `orphand ps` shows it
  sudo orphand spare --unit gateway.service             what runs in this unit
  sudo orphand spare --slice mcp.slice                  what runs below this slice
  sudo orphand spare --unit gateway.service --user bob  what runs in it as this user
  orphand spare --list
  sudo orphand spare --remove inventory                 take it back")]
pub struct Spare {
    /// The program of this process, server or agent
    #[arg(value_name = "PID|ID|NAME", required_unless_present_any = ["unit", "user", "remove", "list"])]
    #[arg(conflicts_with_all = ["unit", "user", "remove", "list"])]
    #[arg(add = ArgValueCandidates::new(complete::servers))]
    pub what: Option<String>,
    /// What runs in this systemd service, or below this slice
    #[arg(long, visible_alias = "slice", value_name = "UNIT", conflicts_with_all = ["remove", "list"])]
    pub unit: Option<String>,
    /// What runs as this user
    #[arg(long, value_name = "USER", conflicts_with_all = ["remove", "list"])]
    pub user: Option<String>,
    /// Take an exemption back that this verb made, by its name
    #[arg(long, value_name = "NAME", conflicts_with = "list", add = ArgValueCandidates::new(complete::spared))]
    pub remove: Option<String>,
    /// Show the exemptions that this verb made
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand pause 30m                                while you look into something
  sudo orphand pause                                    until: sudo orphand resume
  sudo orphand status --json | jq .pause                until when, and by whom")]
pub struct Pause {
    /// For how long, such as 30m, 8h or 7d [default: until `orphand resume`]
    #[arg(value_name = "DUR", value_parser = above_zero)]
    pub time: Option<Duration>,
    #[command(flatten)]
    pub common: Common,
}

fn above_zero(typed: &str) -> Result<Duration, String> {
    let time = parse_period(typed).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("a pause takes a time above zero".to_owned()) } else { Ok(time) }
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand mode                                     what is in effect, and who decided it
  sudo orphand mode observe                             end nothing from now on
  sudo orphand mode configured                          take that back: as the configuration says")]
pub struct Mode {
    /// The mode [default: show it]
    #[arg(value_parser = one_of(MODE))]
    pub mode: Option<Decision>,
    #[command(flatten)]
    pub common: Common,
}

/// The modes to choose.
const MODE: &[Word<Decision>] = &[
    ("observe", Decision::Mode { mode: Some(RunMode::Observe) }, "Judge and report, never send a signal"),
    ("enforce", Decision::Mode { mode: Some(RunMode::Enforce) }, "End orphans"),
    ("configured", Decision::Mode { mode: None }, "What the configuration says"),
];

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand events                                   the last 24 hours
  sudo orphand events --follow                          what happens from now on
  sudo orphand events --since 14:03 --follow            the same, and what was reported since 14:03
  sudo orphand events --since 7d --json | jq 'select(.event == \"orphan_reaped\")'")]
pub struct Events {
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub follow: bool,
    /// From when on: 90m, 24h, 7d before now, or a time such as 14:03 [default: 24h; with --follow: now]
    #[arg(long, value_name = "DUR|TIME")]
    pub since: Option<Moment>,
    #[command(flatten)]
    pub lines: Lines,
    #[command(flatten)]
    pub places: Places,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand history
  sudo orphand history --at 14:03                       was it orphand? what was signalled around that time
  sudo orphand history --since 9:00 --until 12:30 --agent claude
  sudo orphand history --since 30d --leaks              which runs leaked, most memory first
  sudo orphand history --since 90d --json | jq '.runs[] | select(.orphans > 0)'")]
pub struct History {
    /// From when on: 90m, 24h, 7d, 4w before now, or a time such as 14:03 [default: 7d]
    #[arg(long, value_name = "DUR|TIME")]
    pub since: Option<Moment>,
    /// Until when: a time such as 14:03 or 2026-11-23 14:03, or 2h before now
    #[arg(long, value_name = "DUR|TIME")]
    pub until: Option<Moment>,
    /// The five minutes before and after a time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["since", "until"])]
    pub at: Option<Moment>,
    /// Only agents and runs that left orphans behind, most memory first
    #[arg(long)]
    pub leaks: bool,
    /// Only agents of this name, or of this systemd unit
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::agents))]
    pub agent: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check the configuration: name the first mistake, with file, line and key
    #[command(long_about = "Check the configuration: name the first mistake, with file, line and key

Reads FILE and conf.d/*.toml beside it as the daemon does. A mistake goes to standard error. A hook with which the daemon would not \
start here is noted on standard output. As root, or with capabilities, a file that others may write is a mistake. Ends with status 1 \
if anything is wrong.")]
    #[command(after_help = "Examples:
  orphand config check
  orphand config check ./config.toml
  orphand config check --json | jq -r '.errors[] | \"\\(.file):\\(.line) \\(.message)\"'")]
    Check {
        /// The file [default: /etc/orphand/config.toml, if it exists]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the configuration in effect, including defaults
    #[command(after_help = "Examples:
  orphand config show --origin
  orphand config show --json | jq .grace")]
    Show {
        /// The configuration [default: /etc/orphand/config.toml, if it exists]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Show where each value came from
        #[arg(long, conflicts_with = "json")]
        origin: bool,
        /// Print JSON instead of TOML
        #[arg(long)]
        json: bool,
    },
    /// Print a configuration file with every key, commented out and explained
    #[command(after_help = "Example:
  orphand config default | sudo tee /etc/orphand/config.toml")]
    Default,
}

//! Long help texts.

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  orphand scan                   servers and orphans that are there now";

pub(super) const LONG_HELP: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  orphand scan                   servers and orphans that are there now

Environment:
  ORPHAND_LOG  what is logged to standard error: error, warn, info, debug, trace; overrides
               `log` in the configuration (default: info)
  NO_COLOR     if set to any value, no colours

Exit status:
  0  success
  1  failure; one line on standard error says what, why, and what to do
  2  wrong usage
  3  scan --exit-code found an orphan";

pub(super) const LONG_RUN: &str = "Watch this host: stream events, end orphans

Needs root, or the capabilities CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_KILL and CAP_DAC_READ_SEARCH. \
Events go to standard output, logs to standard error. SIGTERM and SIGINT stop it and leave all other processes alone.";

pub(super) const LONG_SCAN: &str = "Read /proc once: show servers and orphans, with evidence

Needs no daemon and no eBPF. Without root it sees your own processes well and those of others in part, and \
says what it could not see. It ends nothing.";

pub(super) const LONG_TREE: &str = "Show agents, their servers and processes as a tree

Asks the running daemon, which has witnessed who started whom. Without a daemon it reads /proc.";

pub(super) const LONG_REAP: &str = "End orphans now

Shows the servers it would end, asks, ends exactly those, waits, and reports what became of them. A guard protects a server \
whoever asks. An unproven server (its owner is gone, but somebody may still use it; the plan says why) is no orphan: it is \
included only with --include-unproven, or by its --pid. The running daemon does the work. Without a daemon it is done from \
the evidence in /proc alone.

With --duplicates it shows and ends further servers of one identity (rule, arguments, working directory) of one living owner; the \
newest of each stays. Another thread or conversation may be using them: one that is ended takes its tools away. Ends with status 1 if something stays that was to be ended.";
pub(super) const LONG_HISTORY: &str = "Show past runs, orphans and what was freed, from the daemon's store

Prints a line for each run of an agent: what it left behind, what was ended, how much memory that freed. Then come the orphans \
that are still there or could not be ended, and the latest of the rest. Works with a running daemon and without one.";
pub(super) const LONG_RELOAD: &str = "Make the running daemon read its configuration again

The same as SIGHUP, but it reports the result. A configuration with a mistake changes nothing: the old one stays in effect, \
the line says why, and the status is 1. Rules also apply to what is followed already. Addresses, sockets, the store and the \
ring change at the next start only; the answer names such keys.";
pub(super) const LONG_DOCTOR: &str = "Check the kernel, the rights, and the units that host agents

Checks rights, kernel, state directory and daemon. Where no daemon runs, it loads the kernel programs as the daemon does (which \
mounts tracefs if they need it) and removes them again. Then it asks the service managers (the host's, users' and those of \
containers) how they stop each unit that hosts an agent or what agents left behind. For KillMode=process and none it prints the \
drop-in that corrects the unit, ready for `systemctl edit`. It changes nothing else.

`ok` is well, `note` is good to know, `wrong` must be corrected, `?` could not be found out. Ends with status 1 only if something \
is known to be wrong. In JSON, `blind` of a unit says what could not be found out.";

pub(super) const LONG_REPLAY: &str = "Run a recorded trace through the same engine

Prints the events that the daemon emitted when the trace was recorded. Needs no privilege and touches no process.";

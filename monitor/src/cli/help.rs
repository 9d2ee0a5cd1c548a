//! Long help texts.

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  orphand scan                   servers and orphans at this moment";

pub(super) const LONG_HELP: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  orphand scan                   servers and orphans at this moment

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

pub(super) const LONG_SCAN: &str = "Read /proc once: servers and orphans, with evidence

Needs no daemon and no eBPF. Without root it sees the processes of other users only in part, and says what it could \
not see. It ends nothing.";

pub(super) const LONG_TREE: &str = "Show agents, their servers and processes as a tree

Asks the running daemon, which has witnessed which process started which. Without a daemon it reads /proc.";

pub(super) const LONG_REAP: &str = "End orphans and other selected servers now

Lists the selected servers, asks for confirmation, ends exactly those, waits, and prints the result. Servers with a guard \
always stay. An unproven server (its owner is gone, but somebody may still use it; the list says why) is not an orphan: it is \
selected only by --include-unproven or by its --pid. The running daemon ends the servers. Without a daemon, only the \
evidence in /proc is used. Exits with status 1 if a server stays that should have been ended.";
pub(super) const LONG_HISTORY: &str = "Show past runs, orphans and what was freed, from the daemon's store

Prints one line for each run of an agent: what it left behind, what was ended, and how much memory that freed. Then \
it lists the orphans that are still there or could not be ended, and the latest of the others. Works with and without a \
running daemon.";
pub(super) const LONG_RELOAD: &str = "Make the running daemon read its configuration again

The same as SIGHUP, but it reports the result. If the configuration has a mistake, the old one stays in effect, one line \
says why, and the status is 1. Rules also apply to processes that are already followed. What is opened at the start \
(addresses, sockets, the store, the ring buffer) changes at the next start; those keys are listed.";
pub(super) const LONG_DOCTOR: &str = "Check the kernel, the rights of orphand, and the units with agents

Checks the rights, the kernel, the state directory and the daemon. If no daemon runs, it loads the eBPF programs as the \
daemon does (which mounts tracefs if needed) and removes them again. Then it asks the service managers of the host, of users \
and of containers how they stop each unit that contains an agent or what agents left behind. For KillMode=process and none it \
prints the drop-in that fixes it, ready for `systemctl edit`. It changes nothing else.

`ok` needs no action, `note` is good to know, `wrong` must be fixed, `?` could not be found out. Exits with status 1 only if \
something is known to be wrong. In JSON, `blind` of a unit says what could not be found out.";

pub(super) const LONG_REPLAY: &str = "Run a recorded trace through the same engine

Prints the events that the daemon printed when the trace was recorded. Needs no privilege and affects no process.";

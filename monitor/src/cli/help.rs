//! What the help says beyond one line a flag.

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  orphand scan                   one look at what is there now";

pub(super) const LONG_HELP: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  orphand scan                   one look at what is there now

Environment:
  ORPHAND_LOG  what is logged to standard error: error, warn, info, debug, trace; beats `log` in the
               configuration (default: info)
  NO_COLOR     no colours, if set to anything

Exit status:
  0  done
  1  failed; one line on standard error says what, why, and what to do
  2  wrong usage
  3  scan --exit-code found an orphan";

pub(super) const LONG_RUN: &str = "Watch this host: stream events, end orphans

Needs root, or the capabilities CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_KILL and CAP_DAC_READ_SEARCH. \
Events go to standard output, logs to standard error. SIGTERM and SIGINT stop it; what it watches goes on.";

pub(super) const LONG_SCAN: &str = "Look through /proc once: servers and orphans, with evidence

Needs no daemon and no eBPF; without root it sees your own processes well and those of others in part, and \
says what it could not see. It ends nothing.";

pub(super) const LONG_TREE: &str = "Show agents, their servers and processes as a tree

Asks the running daemon, which has witnessed who started whom. Without one it looks through /proc.";

pub(super) const LONG_REAP: &str = "End orphans now, and what else is asked for

Shows which servers that means, asks, ends exactly those, waits, and tells what became of them. What a guard \
protects stays, whoever asks. An unproven server (its owner is gone, but somebody may still use it: the plan says why) is no \
orphan: it is meant only with --include-unproven, or by its --pid. The running daemon does it; without one it is done from the evidence in /proc \
alone. Ends with status 1 if something stays that was to be ended.";
pub(super) const LONG_HISTORY: &str = "Show past runs, orphans and what was freed, from the daemon's store

A line for each run of an agent: what it left behind, what was ended, what that gave back; then the orphans \
that are still there or made trouble, and the latest of the rest. Works beside a running daemon and without one.";
pub(super) const LONG_RELOAD: &str = "Have the running daemon read its configuration again

The same as SIGHUP, but it tells what became of it. A configuration with a mistake changes nothing: the old one stays in effect, \
the line says why, and the status is 1. Rules hold for what is followed already, too. What is open at the start (addresses, \
sockets, the store, the ring) takes effect at the next one; that is told.";
pub(super) const LONG_DOCTOR: &str = "Check the kernel, our rights, and the units that host agents

Looks at our rights, the kernel, the state directory and the daemon. Where none runs it loads the kernel programs as the \
daemon does (which mounts tracefs if they need it) and takes them off again. Then it asks the service managers how they stop \
each unit that hosts an agent or what agents left: the host's, users' and those of containers. For KillMode=process and none it \
prints the drop-in that mends it, ready for `systemctl edit`. Changes nothing else.

`ok` is well, `note` good to know, `wrong` is to be mended, `?` could not be found out. Ends with status 1 only if something is \
known to be wrong; in JSON what could not be found out is `blind` of a unit.";

pub(super) const LONG_REPLAY: &str = "Run a recorded trace through the same engine

Prints the events the daemon told when the trace was recorded. Needs no privilege and touches no process.";

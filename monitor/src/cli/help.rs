//! Long help texts.

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  sudo orphand ps                servers and orphans that are there now, worst first";

pub(super) const LONG_HELP: &str = "\
Examples:
  sudo orphand run --observe     watch and judge, end nothing
  sudo orphand ps                servers and orphans that are there now, worst first

Environment:
  ORPHAND_LOG  what is logged to standard error: error, warn, info (default), debug,
               trace
  NO_COLOR     if set to any value, no colours

Files:
  /etc/orphand/config.toml     the configuration, see orphand.toml(5); it may be absent
  /etc/orphand/conf.d/*.toml   further files of it, by name; later ones beat earlier ones
  /var/lib/orphand/orphand.db  the store: runs, their numbers, orphans; it outlives restarts
  /run/orphand/lock            the lock file of the running daemon, with its process number

Exit status:
  0  success
  1  failure; one line on standard error says what, why, and what to do
  2  wrong usage
  3  ps --exit-code found an orphan
  4  nothing matched what was asked for";

pub(super) const LONG_RUN: &str = "Watch this host: stream events, end orphans

Needs root, or the capabilities CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_KILL and CAP_DAC_READ_SEARCH. \
Events go to standard output, logs to standard error. SIGTERM and SIGINT stop it and leave all other processes alone.";

pub(super) const LONG_PS: &str = "List servers with their state, worst first

The states: orphan (nobody can use it any more), ending (it is being ended), kept (an orphan that stays because of a guard), unproven \
(its owner is gone, and somebody may still use it), suspect (its owner is gone, and its grace is not over), live. It ends nothing.

Asks the running daemon, which has witnessed who created whom. Without one it looks through /proc once, and says what that cannot \
know. Without root it sees your own processes well and those of others in part. Ends with status 4 if --state or --agent match \
nothing.";

pub(super) const LONG_REAP: &str = "End orphans now

Shows the servers it would end, asks, ends exactly those, waits, and reports what became of them. A guard protects a server \
whoever asks. An unproven server (its owner is gone, but somebody may still use it; the plan says why) is no orphan: it is \
included only with --include-unproven. The running daemon does the work. Without a daemon it is done from \
the evidence in /proc alone.

With --duplicates it shows and ends further servers of one identity (rule, arguments, working directory) of one living owner; the \
newest of each stays. Another thread or conversation may be using them: one that is ended takes its tools away.

Ends with status 1 if something stays that was to be ended, and with status 4 if nothing is what was asked for.";
pub(super) const LONG_EVENTS: &str = "Show events: what was told since a time, and with --follow what happens now

Text on a terminal; into a pipe the lines that `orphand run` writes. With --follow it goes on with what happens, and when the \
daemon restarts it says so on standard error and continues where it was. What a slow reader misses is told by a `lost` line. \
Without a daemon, or with --state-dir alone, it shows what is kept in the state directory; --follow then ends with status 1.

Times are local: 14:03 (the latest one), yesterday 14:03, 2026-11-23 14:03, or how long ago: 90m, 24h, 7d.";
pub(super) const LONG_HISTORY: &str = "Show past runs, orphans, signals and what was freed, from the daemon's store

Prints a line for each run of an agent: what it left behind, what was ended, how much memory that freed. Then come the orphans \
that are still there or could not be ended, and the latest of the rest. Works with a running daemon and without one. With \
--state-dir alone no daemon is asked. Ends with status 4 if nothing matched.

With --at or --until it lists each signal that the daemon sent in that time: to which process, which one, on which verdict and \
evidence. If it sent none, it says so. --leaks shows the runs that left orphans behind, most memory first.

Times are local: 14:03 (the latest one), yesterday 14:03, 2026-11-23 14:03, or how long ago: 90m, 24h, 7d.";
pub(super) const LONG_EXPLAIN: &str = "Say of a process what it is taken for, who can reach it, and what happens next

Takes a process number, the id of a server (PID@START), or the name of a server or an agent. Asks the running daemon, which \
has witnessed who created whom; without one it looks through /proc once, and says what that cannot know, as it does with --state-dir alone. Of what has ended it \
says from the store who ended it, when, and why. Ends with status 4 if nothing matched.";
pub(super) const LONG_RELEASE: &str = "Say that you are done with a server of yours: it is ended unless somebody uses it

For a manager that lives on and keeps the pipes of its servers open. The server has the time of abandoned_grace (30 s). Then it \
is judged like one whose agent has ended, and what its agent still holds of it counts only if the server was used since. Another \
process that can reach it keeps it. A use takes the release back; then it can be released again.

Needs no root: everybody may release servers all of whose processes are his own, and root any. The daemon forgets releases when it \
ends. Ends with status 1 and one line if a server belongs to somebody else (nothing is released then), and with status 4 if nothing is \
what was asked for.";
pub(super) const LONG_RELOAD: &str = "Make the running daemon read its configuration again

The same as SIGHUP, but it reports the result. A configuration with a mistake changes nothing: the old one stays in effect, \
the line says why, and the status is 1. Rules also apply to what is followed already. Addresses, sockets, the store and the \
ring change at the next start only; the answer names such keys.";
pub(super) const LONG_PAUSE: &str = "End nothing for a while

The running daemon goes on judging and reporting, and sends no signal: not even the SIGKILL to a server that was asked to end \
already. `orphand reap` still ends what a person asks for. A pause is remembered if the daemon or the host is started again, and \
ends by itself after DUR. What was left behind meanwhile is then inspected anew before anything is done about it. A second pause \
replaces the first.

Ends with status 1 if the daemon cannot remember the pause: then it is in effect until the daemon ends.";
pub(super) const LONG_RESUME: &str = "End the pause

What was left behind meanwhile is inspected anew, and ended if nobody can use it. A mode that was chosen with `orphand mode` \
holds again. Without a pause nothing changes.";
pub(super) const LONG_MODE: &str = "Choose whether orphans are ended, whatever the configuration says, or show that

A mode that a person chose beats `observe` of the configuration, also after a restart and a reload, until `orphand mode \
configured`. A pause beats a chosen mode. `orphand run --observe` beats everything: such a daemon refuses `enforce`.

Without a mode it shows what is in effect and who decided it. Ends with status 1 if the daemon refuses, or cannot remember it.";
pub(super) const LONG_SPARE: &str = "Exempt a program, a unit or a user

Writes a rule into conf.d/spared.toml beside the configuration that the daemon reads, checks the configuration with it as \
`orphand config check` does, and makes the daemon read it. What it matches is judged and reported, and never ended by orphand, \
with all that it starts.

A process number or a name is turned into a rule about the program: its package, module, script or name. So every process of that \
program is spared, and it is spared after a restart, too. --remove takes an exemption back by its name, --list shows all.

Ends with status 1 if the configuration would be wrong (then nothing is changed) or the daemon does not take it, and with status 4 \
if nothing matched.";
pub(super) const LONG_DOCTOR: &str = "Check the kernel, the rights, and the units that host agents

Checks rights, kernel, state directory and daemon. Where no daemon runs, it loads the kernel programs as the daemon does (which \
mounts tracefs if they need it) and removes them again. Then it asks the service managers (the host's, users' and those of \
containers) how they stop each unit that hosts an agent or what agents left behind. For KillMode=process and none it prints the \
drop-in that corrects the unit, ready for `systemctl edit`. It changes nothing else.

`ok` is well, `note` is good to know, `wrong` must be corrected, `?` could not be found out. Ends with status 1 only if something \
is known to be wrong. In JSON, `blind` of a unit says what could not be found out.";

pub(super) const LONG_REPLAY: &str = "Run a recorded trace through the same engine

Prints the events that the daemon emitted when the trace was recorded. Needs no privilege and touches no process.";

pub(super) const RELOAD_EXAMPLES: &str = "Examples:
  sudo orphand config check && sudo orphand reload
  sudo orphand reload --json | jq .later               keys that take effect only at the next start";

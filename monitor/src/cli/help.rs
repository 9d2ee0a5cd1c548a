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

pub(super) const RELOAD_EXAMPLES: &str = "Examples:
  sudo orphand config check && sudo orphand reload
  sudo orphand reload --json | jq .later               keys that take effect only at the next start";

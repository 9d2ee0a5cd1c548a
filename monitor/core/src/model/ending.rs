//! How a process ended, and by whom: fields of events and of the history, and their words.

use serde::{Deserialize, Serialize};

use super::text;

/// How a process ended: the main process of a server, or an agent. Empty if its end was not witnessed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The exit code of its main process, if that called exit(2) and the exit was witnessed.
    pub exit_code: Option<u8>,
    /// The signal that ended its main process, if one did.
    pub signal: Option<u8>,
    /// Who sent that signal; absent if the kernel did not tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub killed_by: Option<Killer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killer {
    /// What it was.
    pub by: KilledBy,
    /// The process that sent it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start: Option<u64>,
    /// The name of its program, as the kernel keeps it: 15 bytes at most.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// The name of its real user, if this host knows one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uid: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KilledBy {
    /// Another process.
    Process,
    /// The process itself, for instance with abort(3).
    Itself,
    /// The kernel: a fault, a timer, a wire that nobody reads, a terminal that was closed.
    Kernel,
    /// The kernel, because memory had run out.
    OutOfMemory,
    /// This daemon.
    Orphand,
}

const OWN_NAME: &str = "orphand";

impl Killer {
    pub const fn of(by: KilledBy) -> Self {
        Self { by, pid: None, start: None, program: None, user: None, uid: None }
    }

    /// `from pid 4711 (pkill, alice)`.
    fn words(&self) -> String {
        match self.by {
            KilledBy::Itself => "from itself".to_owned(),
            KilledBy::Kernel => "from the kernel".to_owned(),
            KilledBy::OutOfMemory => "from the kernel, which had no memory left".to_owned(),
            KilledBy::Orphand => "from orphand".to_owned(),
            KilledBy::Process => {
                let program = self.program.as_deref().map(|program| text::sanitise(program).into_owned());
                let uid = || self.uid.map(|uid| format!("uid {uid}"));
                let user = self.user.as_deref().map(|user| text::sanitise(user).into_owned()).or_else(uid);
                let more: Vec<String> = [program, user].into_iter().flatten().collect();
                let pid = self.pid.unwrap_or_default();
                format!("from pid {pid} ({})", more.join(", "))
            }
        }
    }
}

impl Ending {
    pub fn code(code: u8) -> Self {
        Self { exit_code: Some(code), ..Self::default() }
    }

    pub fn signal(signal: u8, killed_by: Option<Killer>) -> Self {
        Self { exit_code: None, signal: Some(signal), killed_by }
    }

    /// What it did: `exited with code 1`, `was killed by SIGKILL from pid 4711 (pkill, alice)`.
    pub fn words(&self) -> String {
        match (self.exit_code, self.signal) {
            (_, Some(signal)) => {
                let unknown = || "from an unknown sender".to_owned();
                let sender = self.killed_by.as_ref().map_or_else(unknown, Killer::words);
                format!("was killed by {} {sender}", signal_name(signal))
            }
            (Some(0), None) => "exited".to_owned(),
            (Some(code), None) => format!("exited with code {code}"),
            (None, None) => "ended".to_owned(),
        }
    }

    /// Likewise; of what a signal ended it says whether orphand sent it.
    pub fn told(&self) -> String {
        let not = if self.signal.is_some() && !self.is_by_orphand() { ", not by orphand" } else { "" };
        format!("{}{not}", self.words())
    }

    /// Whether this daemon ended it, or another orphand that a person ran.
    pub fn is_by_orphand(&self) -> bool {
        self.killed_by.as_ref().is_some_and(|killer| {
            killer.by == KilledBy::Orphand || killer.program.as_deref() == Some(OWN_NAME)
        })
    }
}

/// The names of those signals that end processes, signal(7). They have the same numbers on every architecture that
/// orphand is built for.
#[rustfmt::skip]
const SIGNALS: [(u8, &str); 18] = [
    (1, "SIGHUP"), (2, "SIGINT"), (3, "SIGQUIT"), (4, "SIGILL"), (5, "SIGTRAP"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"),
    (9, "SIGKILL"), (10, "SIGUSR1"), (11, "SIGSEGV"), (12, "SIGUSR2"), (13, "SIGPIPE"), (14, "SIGALRM"), (15, "SIGTERM"),
    (24, "SIGXCPU"), (25, "SIGXFSZ"), (31, "SIGSYS"),
];

pub fn signal_name(number: u8) -> String {
    let known = SIGNALS.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(program: &str, user: Option<&str>) -> Killer {
        Killer {
            pid: Some(4711),
            program: Some(program.to_owned()),
            user: user.map(str::to_owned),
            uid: Some(1000),
            ..Killer::of(KilledBy::Process)
        }
    }

    #[test]
    fn who_ended_it_is_said() {
        for (by, told) in [
            (Some(process("pkill", Some("alice"))), "from pid 4711 (pkill, alice), not by orphand"),
            (Some(process("pkill", None)), "from pid 4711 (pkill, uid 1000), not by orphand"),
            (Some(process("a\u{1b}[2J", None)), "from pid 4711 (a\\x1b[2J, uid 1000), not by orphand"),
            (Some(process("orphand", Some("root"))), "from pid 4711 (orphand, root)"),
            (Some(Killer::of(KilledBy::Itself)), "from itself, not by orphand"),
            (Some(Killer::of(KilledBy::Kernel)), "from the kernel, not by orphand"),
            (
                Some(Killer::of(KilledBy::OutOfMemory)),
                "from the kernel, which had no memory left, not by orphand",
            ),
            (Some(Killer::of(KilledBy::Orphand)), "from orphand"),
            (None, "from an unknown sender, not by orphand"),
        ] {
            let ending = Ending::signal(9, by);
            assert_eq!(ending.told(), format!("was killed by SIGKILL {told}"));
        }
    }

    #[test]
    fn what_no_signal_ended_has_no_killer() {
        for (ending, told) in [
            (Ending::code(0), "exited"),
            (Ending::code(3), "exited with code 3"),
            (Ending::default(), "ended"),
        ] {
            assert_eq!(ending.told(), told);
            assert!(!serde_json::to_string(&ending).unwrap().contains("killed_by"));
        }
    }
}

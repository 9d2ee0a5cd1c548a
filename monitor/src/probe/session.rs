//! The session that a server was started for: its id is in the environment or on the command line of the server.
//!
//! Both are what the server's owner, or the server itself, wrote: they are bounded, and an id that could not be read to
//! its end is none.

use super::Probe;
use crate::host::ProcessDir;
use orphand_core::model::{ProcessId, SessionMark, SessionSubject, session_id, session_in_arguments};

/// The longest command line that is searched, in bytes.
const ARGUMENTS: usize = 128 * 1024;

impl Probe {
    /// The id of the session of this server; `None` if it has none, or if that is not clear.
    pub(super) fn session(&self, subject: &SessionSubject) -> Option<String> {
        let SessionSubject { main, chain, owner, mark } = subject;
        let id = self.session_of(*main, mark).or_else(|| {
            let mut ids: Vec<String> =
                chain.iter().filter_map(|process| self.session_of(*process, mark)).collect();
            ids.dedup();
            if ids.len() == 1 { ids.pop() } else { None }
        })?;
        let inherited = match mark {
            SessionMark::Flag(_) => false,
            SessionMark::Variable(name) => {
                let owner = self.proc.identified(*owner).ok()??;
                owner.has_environment(format!("{name}={id}").as_bytes())
            }
        };
        (!inherited).then_some(id)
    }

    fn session_of(&self, process: ProcessId, mark: &SessionMark) -> Option<String> {
        let dir = self.proc.identified(process).ok()??;
        match mark {
            SessionMark::Variable(name) => session_id(&dir.environment(name).ok()??),
            SessionMark::Flag(flag) => in_command_line(&dir, flag),
        }
    }
}

fn in_command_line(dir: &ProcessDir, flag: &str) -> Option<String> {
    let (line, more) = dir.command_line(ARGUMENTS).ok()?;
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    if more { None } else { session_in_arguments(flag, line.split(|byte| *byte == 0)) }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read as _,
        process::{Child, Command, Stdio},
    };

    use super::*;
    use orphand_core::model::{About, Answer};

    /// A process that sleeps, with this variable and these arguments; it ends with the value.
    struct Sleeper(Child);

    impl Sleeper {
        fn start(session: Option<&str>, arguments: &[&str]) -> Self {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "echo; read -r _; exit"]).args(arguments);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).env_clear();
            let mut child = command.envs(session.map(|id| ("MCP_SESSION_ID", id))).spawn().unwrap();
            // Once it has said something its exec is over.
            child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
            Self(child)
        }

        fn id(&self, probe: &Probe) -> ProcessId {
            probe.proc.process(self.0.id()).unwrap().id()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn session(main: &Sleeper, chain: &[&Sleeper], owner: &Sleeper, mark: SessionMark) -> Option<String> {
        let probe = Probe::new().unwrap();
        let chain = chain.iter().map(|process| process.id(&probe)).collect();
        let subject = SessionSubject { main: main.id(&probe), chain, owner: owner.id(&probe), mark };
        match probe.answer(&About::Session(Box::new(subject)), &Vec::new) {
            Answer::Session { id } => id,
            other => panic!("{other:?}"),
        }
    }

    fn variable() -> SessionMark {
        SessionMark::Variable("MCP_SESSION_ID".to_owned())
    }

    #[test]
    fn the_id_is_that_of_the_server_else_of_its_launch_chain() {
        let [none, a, b] = [None, Some("a"), Some("b")].map(|id| Sleeper::start(id, &[]));
        assert_eq!(session(&a, &[&b], &none, variable()).as_deref(), Some("a"));
        assert_eq!(session(&none, &[&b, &none], &none, variable()).as_deref(), Some("b"));
        assert_eq!(session(&none, &[&a, &b], &none, variable()), None, "which one is not clear");
        assert_eq!(session(&none, &[], &none, variable()), None);
    }

    #[test]
    fn an_id_that_the_owner_has_too_was_inherited() {
        let [a, again, b] = ["a", "a", "b"].map(|id| Sleeper::start(Some(id), &[]));
        assert_eq!(session(&a, &[], &again, variable()), None);
        assert_eq!(session(&a, &[], &b, variable()).as_deref(), Some("a"));
    }

    #[test]
    fn an_id_may_be_an_argument() {
        let flag = || SessionMark::Flag("--session".to_owned());
        let none = Sleeper::start(None, &[]);
        for arguments in [&["x", "--session", "a"][..], &["x", "--session=a"]] {
            let one = Sleeper::start(None, arguments);
            assert_eq!(session(&one, &[], &none, flag()).as_deref(), Some("a"));
        }
        assert_eq!(session(&Sleeper::start(None, &["x", "--session"]), &[], &none, flag()), None);
        assert_eq!(session(&Sleeper::start(None, &["x", "--session", "a\nb"]), &[], &none, flag()), None);
    }
}

//! The session that a server was started for: its id is in the environment or on the command line of the server. The
//! client of a container hands it on (`docker run -e NAME=ID`), or it is in the environment of the container only.
//!
//! Both are what the server's owner, or the server itself, wrote: they are bounded, and an id that could not be read to
//! its end is none.

use super::{Probe, containers::resembles_client};
use crate::host::ProcessDir;
use orphand_core::{
    model::{Image, ProcessId, SessionMark, SessionSubject, session_id, session_in_arguments},
    recognise::handed_on_by_client,
};

/// The longest command line that is searched, in bytes.
const ARGUMENTS: usize = 128 * 1024;

impl Probe {
    /// The id of the session of this server; `None` if it has none, or if that is not clear.
    pub(super) fn session(&self, subject: &SessionSubject) -> Option<String> {
        let SessionSubject { main, chain, inside, owner, mark } = subject;
        let id = self.session_of(*main, mark).or_else(|| {
            let mut ids: Vec<String> =
                chain.iter().filter_map(|process| self.session_of(*process, mark)).collect();
            ids.dedup();
            match ids.len() {
                0 => inside.and_then(|first| self.session_of(first, mark)),
                1 => ids.pop(),
                _ => None,
            }
        })?;
        let inherited = match (mark, owner) {
            (SessionMark::Variable(name), Some(owner)) => self.inherits(*owner, name, &id)?,
            _ => false,
        };
        (!inherited).then_some(id)
    }

    /// Whether the owner has this value in its own environment, so that all it starts inherit it; `None` if that is not
    /// seen.
    pub(super) fn inherits(&self, owner: ProcessId, name: &str, value: &str) -> Option<bool> {
        Some(self.proc.identified(owner).ok()??.has_environment(format!("{name}={value}").as_bytes()))
    }

    fn session_of(&self, process: ProcessId, mark: &SessionMark) -> Option<String> {
        let dir = self.proc.identified(process).ok()??;
        match mark {
            SessionMark::Variable(name) => in_environment(&dir, name),
            SessionMark::Flag(flag) => {
                let line = command_line(&dir)?;
                session_in_arguments(flag, line.split(|byte| *byte == 0))
            }
        }
    }
}

/// The id in the environment of a process, or in that of the container that it is the client of.
fn in_environment(dir: &ProcessDir, name: &str) -> Option<String> {
    let own = || session_id(&dir.environment(name).ok()??);
    if !resembles_client(&dir.image()) {
        return own();
    }
    let line = command_line(dir)?;
    let argv = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let image = Image { argv, argv_truncated: false, ..dir.image() };
    match handed_on_by_client(&image, name).as_slice() {
        [] | [None] => own(),
        [Some(only)] => session_id(only.as_bytes()),
        _ => None,
    }
}

/// The whole command line, without the last NUL byte; `None` if it is too long.
fn command_line(dir: &ProcessDir) -> Option<Vec<u8>> {
    let (mut line, more) = dir.command_line(ARGUMENTS).ok()?;
    if line.last() == Some(&0) {
        line.pop();
    }
    (!more).then_some(line)
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt as _,
        process::{Command, Stdio},
    };

    use super::*;
    use crate::probe::tests::Started;
    use orphand_core::model::{About, Answer};

    const SCRIPT: &str = "echo; read -r _; exit";

    /// A process that sleeps, with this variable and these arguments.
    fn sleeper(session: Option<&str>, arguments: &[&str]) -> Started {
        started(Command::new("/bin/sh").args(["-c", SCRIPT]).args(arguments), session)
    }

    /// It calls itself `docker`, and has these arguments only.
    fn client(session: Option<&str>, arguments: &[&str]) -> Started {
        // The shell takes the first of them for its script.
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(arguments[0]), SCRIPT).unwrap();
        let mut command = Command::new("/bin/sh");
        started(command.arg0("docker").args(arguments).current_dir(folder.path()), session)
    }

    /// Once it has said something its exec is over.
    fn started(command: &mut Command, session: Option<&str>) -> Started {
        let command = command.stdin(Stdio::piped()).env_clear().env("A", "1");
        Started::line_of(command.envs(session.map(|id| ("MCP_SESSION_ID", id)))).0
    }

    fn session(main: &Started, chain: &[&Started], owner: &Started, mark: SessionMark) -> Option<String> {
        session_with(main, chain, None, Some(owner), mark)
    }

    fn session_with(
        main: &Started,
        chain: &[&Started],
        inside: Option<&Started>,
        owner: Option<&Started>,
        mark: SessionMark,
    ) -> Option<String> {
        let probe = Probe::new().unwrap();
        let id = Started::id;
        let chain = chain.iter().map(|process| id(process)).collect();
        let (inside, owner) = (inside.map(id), owner.map(id));
        let subject = SessionSubject { main: id(main), chain, inside, owner, mark };
        match probe.answer(&About::Session(Box::new(subject))) {
            Answer::Session { id } => id,
            other => panic!("{other:?}"),
        }
    }

    fn variable() -> SessionMark {
        SessionMark::Variable("MCP_SESSION_ID".to_owned())
    }

    #[test]
    fn the_id_is_that_of_the_server_else_of_its_launch_chain() {
        let [none, a, b] = [None, Some("a"), Some("b")].map(|id| sleeper(id, &[]));
        assert_eq!(session(&a, &[&b], &none, variable()).as_deref(), Some("a"));
        assert_eq!(session(&none, &[&b, &none], &none, variable()).as_deref(), Some("b"));
        assert_eq!(session(&none, &[&a, &b], &none, variable()), None, "which one is not clear");
        assert_eq!(session(&none, &[], &none, variable()), None);
    }

    #[test]
    fn an_id_that_the_owner_has_too_was_inherited() {
        let [a, again, b] = ["a", "a", "b"].map(|id| sleeper(Some(id), &[]));
        assert_eq!(session(&a, &[], &again, variable()), None);
        assert_eq!(session(&a, &[], &b, variable()).as_deref(), Some("a"));
    }

    #[test]
    fn an_id_may_be_in_the_container_only() {
        let [none, a, b] = [None, Some("a"), Some("b")].map(|id| sleeper(id, &[]));
        assert_eq!(session_with(&none, &[], Some(&a), Some(&none), variable()).as_deref(), Some("a"));
        assert_eq!(session_with(&none, &[], Some(&a), None, variable()).as_deref(), Some("a"));
        assert_eq!(session_with(&none, &[], Some(&a), Some(&a), variable()), None, "inherited");
        assert_eq!(session_with(&b, &[], Some(&a), Some(&none), variable()).as_deref(), Some("b"));
        let unclear = session_with(&none, &[&a, &b], Some(&a), Some(&none), variable());
        assert_eq!(unclear, None);
    }

    #[test]
    fn a_client_hands_an_id_on() {
        let [none, a] = [None, Some("a")].map(|id| sleeper(id, &[]));
        let handed_on = |own, options: &[&str]| {
            let words = [&["run", "-i"], options, &["mcp/x"]].concat();
            session(&client(own, &words), &[], &none, variable())
        };
        assert_eq!(handed_on(None, &["-e", "MCP_SESSION_ID=c"]).as_deref(), Some("c"));
        assert_eq!(handed_on(Some("own"), &["--env=MCP_SESSION_ID=c"]).as_deref(), Some("c"));
        assert_eq!(handed_on(Some("own"), &["-e", "MCP_SESSION_ID"]).as_deref(), Some("own"));
        assert_eq!(handed_on(Some("own"), &["-e", "MCP_SESSION_ID=c", "-e", "MCP_SESSION_ID=d"]), None);
        let words = ["run", "-i", "-e", "MCP_SESSION_ID=a", "mcp/x"];
        let client = client(None, &words);
        assert_eq!(session(&client, &[], &a, variable()), None, "inherited");
    }

    #[test]
    fn an_id_may_be_an_argument() {
        let flag = || SessionMark::Flag("--session".to_owned());
        let none = sleeper(None, &[]);
        for arguments in [&["x", "--session", "a"][..], &["x", "--session=a"]] {
            let one = sleeper(None, arguments);
            assert_eq!(session(&one, &[], &none, flag()).as_deref(), Some("a"));
        }
        assert_eq!(session(&sleeper(None, &["x", "--session"]), &[], &none, flag()), None);
        assert_eq!(session(&sleeper(None, &["x", "--session", "a\nb"]), &[], &none, flag()), None);
    }
}

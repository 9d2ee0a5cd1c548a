//! By what a person recognises an agent or a server: its folder, its terminal, its session, its name in the settings.
//!
//! All of it is what users wrote, or chose. It is cut, and shown without what may be secret ([`shown_path`]). What cannot be
//! read is not there.

use super::{Candidate, Probe, metered};
use orphand_core::model::{
    AgentHints, FirstMessage, FoundHints, ProcessId, SESSION_VARIABLES, ServerHints, hinted_session,
    shown_path, tmux_pane,
};

impl Probe {
    /// By what a person recognises this process, if it is an agent. The session is not in its own environment: one that is
    /// there belongs to whoever started it.
    pub(crate) fn agent_hints(&self, process: ProcessId) -> Option<AgentHints> {
        let dir = self.proc.identified(process).ok()??;
        let cwd = dir.link("cwd").ok().and_then(|path| shown_path(&path));
        let terminal = dir.stat().terminal_name().map(|name| {
            let pane = dir.environment("TMUX_PANE").ok().flatten();
            let pane = pane.as_deref().and_then(tmux_pane);
            pane.map_or_else(|| name.clone(), |pane| format!("{name}, tmux {pane}"))
        });
        let hints = AgentHints { session: None, cwd, terminal };
        (dir.still_alive() && hints != AgentHints::default()).then_some(hints)
    }

    /// By what a person recognises this server: the head of its launch chain, of which these are the command lines.
    pub(super) fn server_hints(
        &self,
        server: ProcessId,
        owner: Option<ProcessId>,
        lines: &[Vec<String>],
    ) -> Option<FoundHints> {
        let this = self.clone();
        let (cwd, session) = metered(move || this.folder_and_session(server, owner))?;
        let candidate = Candidate { process: server, earlier: lines.to_vec() };
        let configured_name = match self.declared(&[candidate]).pop() {
            Some(FirstMessage::Declared { name }) => Some(name),
            _ => None,
        };
        Some(FoundHints { server: ServerHints { configured_name, cwd }, session })
    }

    fn folder_and_session(
        &self,
        server: ProcessId,
        owner: Option<ProcessId>,
    ) -> Option<(Option<String>, Option<String>)> {
        let dir = self.proc.identified(server).ok()??;
        let cwd = dir.link("cwd").ok().and_then(|path| shown_path(&path));
        let values = dir.environment_of(SESSION_VARIABLES).unwrap_or_default();
        let named = SESSION_VARIABLES.into_iter().zip(values);
        let found = named.into_iter().find_map(|(name, id)| Some((name, hinted_session(&id?)?)));
        let is_own = |(name, id): &(&str, String)| self.inherits(owner?, name, id).map(|inherits| !inherits);
        let session = found.filter(|found| is_own(found) == Some(true)).map(|(_, id)| id);
        dir.still_alive().then_some((cwd, session))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::probe::tests::Started;

    #[test]
    fn a_session_is_that_of_the_owner_unless_it_has_it_itself() {
        let folder = tempfile::tempdir().unwrap();
        let probe = Probe::new().unwrap();
        let with = |id: &str| {
            let mut command = Command::new("sleep");
            command.arg("600").current_dir(folder.path()).env_clear().env("A", "1").stdin(Stdio::null());
            Started::new(command.envs((!id.is_empty()).then_some(("CLAUDE_CODE_SESSION_ID", id))))
        };
        let [a, b, bad, none] = ["a-1", "b-2", "$(x)", ""].map(with);
        let told = |server: &Started, owner: &Started| {
            probe.server_hints(server.id(), Some(owner.id()), &[]).unwrap()
        };
        assert_eq!(told(&a, &b).session.as_deref(), Some("a-1"));
        assert_eq!(
            (told(&a, &a).session, told(&bad, &b).session, told(&none, &b).session),
            (None, None, None)
        );
        let cwd = told(&a, &b).server.cwd;
        assert_eq!(cwd, shown_path(folder.path().as_os_str().as_encoded_bytes()));
        let agent = probe.agent_hints(a.id()).unwrap();
        assert_eq!((agent.cwd, agent.session), (cwd, None));
        let gone = ProcessId { start: 1, ..a.id() };
        assert_eq!((probe.agent_hints(gone), probe.server_hints(gone, None, &[])), (None, None));
    }
}

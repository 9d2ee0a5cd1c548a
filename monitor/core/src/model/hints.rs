//! By what a person recognises an agent or a server: hints. Their values are what users wrote.
//!
//! Invariant: nothing is concluded from them. They are shown, and no verdict reads them.

use serde::{Deserialize, Serialize};

use super::{redact, session_id, text::is_hostile};

/// Variables by which clients tell the programs that they start what session or thread these are for: Claude Code (stdio
/// servers since 2.1.154), Codex (where `env_vars` of a server's entry names it), goose.
pub const SESSION_VARIABLES: [&str; 3] = ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "AGENT_SESSION_ID"];

/// The longest path that is shown, in characters. Of a longer one the end is.
const PATH: usize = 200;

/// The longest session id that is shown, in characters. Those of clients have 36 at most.
const SESSION: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHints {
    /// The session or thread that it told the programs it started, as last seen (`CLAUDE_CODE_SESSION_ID` and the like).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// Its working directory when it was recognised: usually the folder of the project.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
    /// Its controlling terminal, and the pane of tmux: `pts/3, tmux %5`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub terminal: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerHints {
    /// Its name in the settings of the agent, if they were found to declare it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub configured_name: Option<String>,
    /// Its working directory, as seen soon after its start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundHints {
    pub server: ServerHints,
    /// The session in its environment, unless its owner has the same one: then that is a session of somebody above.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
}

/// A path as a person may see it.
pub fn shown_path(path: &[u8]) -> Option<String> {
    let path: String = String::from_utf8_lossy(path).chars().filter(|c| !is_hostile(*c)).collect();
    let path = redact::path(&path);
    let cut = path.chars().count().saturating_sub(PATH);
    let end: String = path.chars().skip(cut).collect();
    let shown = if cut == 0 { path } else { format!("..{end}") };
    shown.starts_with(['/', '.']).then_some(shown)
}

/// The id of a session as a person may see it, if these bytes can be one.
pub fn hinted_session(id: &[u8]) -> Option<String> {
    let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let is_id = |id: &String| id.len() <= SESSION && id.bytes().all(is_of_id);
    session_id(id).filter(is_id)
}

/// The pane of tmux, if these bytes name one.
pub fn tmux_pane(value: &[u8]) -> Option<&str> {
    let number = value.strip_prefix(b"%")?;
    let is_pane = (1..=10).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_pane)
}

impl AgentHints {
    /// All of them in one text: `/home/me/shop, pts/3, session 0c1d`. `None` if there is none.
    pub fn words(&self) -> Option<String> {
        let session = self.session.as_ref().map(|id| format!("session {id}"));
        let all = [self.cwd.clone(), self.terminal.clone(), session];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_without_what_may_be_secret_or_harm_a_terminal() {
        let shown = |path: &str| shown_path(path.as_bytes());
        assert_eq!(shown("/home/me/shop").as_deref(), Some("/home/me/shop"));
        assert_eq!(shown("/srv/\u{1b}[2Jshop\u{202e}").as_deref(), Some("/srv/***"));
        assert_eq!(
            shown("/srv/sk-ant-api03-AbCdEf0123456789XyZw/shop").as_deref(),
            Some("/srv/***/shop"),
            "a key for a name"
        );
        let long = shown(&format!("/srv{}/shop", "/folder".repeat(100))).unwrap();
        assert!(long.starts_with("..") && long.ends_with("/folder/shop") && long.len() == PATH + 2, "{long}");
        assert_eq!((shown(""), shown("pipe:[7]")), (None, None));
    }

    #[test]
    fn ids_are_short_and_plain() {
        let id = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
        assert_eq!(hinted_session(id.as_bytes()).as_deref(), Some(id));
        for bad in [&b""[..], b"a b", b"a\nb", b"\xff", b"$(reboot)", &[b'x'; SESSION + 1]] {
            assert_eq!(hinted_session(bad), None, "{bad:?}");
        }
        assert_eq!(tmux_pane(b"%12"), Some("%12"));
        for bad in [&b""[..], b"%", b"12", b"%1x", b"%12345678901", b"%\xff"] {
            assert_eq!(tmux_pane(bad), None, "{bad:?}");
        }
    }
}

//! Sessions: a manager starts one server for each of its sessions and keeps the sessions in a registry, such as Redis.
//!
//! The id of a session is chosen by others. It is bounded, and has no character that a terminal may act on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BootTime, ProcessId, policy::nanoseconds, text::is_hostile};

/// The longest id of a session, in bytes. A process with a longer one has none.
pub const LONGEST_ID: usize = 256;
/// Ids with more characters are shown shortened: whoever knows the id of a session may be able to use it.
const SHOWN_WHOLE: usize = 12;
const SHOWN: usize = 8;

/// How sessions are judged. They may change while the daemon runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPolicy {
    /// Which keys of which registry, without a password.
    pub registry: String,
    /// Where a server has the id of its session.
    pub mark: SessionMark,
    /// How long the key of a session must be missing before the session counts as expired.
    #[serde(rename = "idle_ns", with = "nanoseconds")]
    pub idle: Duration,
    /// The time from one question to the registry to the next.
    #[serde(rename = "every_ns", with = "nanoseconds")]
    pub every: Duration,
}

/// Where a server has the id of its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMark {
    /// In this environment variable.
    Variable(String),
    /// After this argument: `--session ID` or `--session=ID`.
    Flag(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSubject {
    pub main: ProcessId,
    /// The rest of its launch chain.
    pub chain: Vec<ProcessId>,
    /// The first process of the container that it works in, if that is known.
    pub inside: Option<ProcessId>,
    /// Its owner. An id that the owner has in its own environment was inherited, and is not that of the server.
    /// Absent for a server that was found in a container, and whose owner nobody knows.
    pub owner: Option<ProcessId>,
    pub mark: SessionMark,
}

/// What the registry said in one round of questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsSeen {
    /// When the first question of the round was sent.
    pub asked: BootTime,
    /// What the registry said of itself; absent if there was no complete answer. Then no key is active or missing.
    pub registry: Option<RegistryLife>,
    pub sessions: Vec<(String, KeyState)>,
}

/// One life of a registry. A registry that restarted, became the copy of another one or was emptied has another life:
/// then the absence of a key says nothing about its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryLife {
    /// Its name; never used again for another life.
    pub name: String,
    /// When it began; absent if the registry has been emptied since.
    pub began: Option<BootTime>,
}

/// What the registry said of the key of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    Active,
    Missing,
    /// It was not asked for, or there was no answer, or another one than these two.
    #[default]
    Unknown,
}

/// The state of a session, as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its key exists.
    Active,
    /// Its key does not exist.
    Missing,
    /// Its key has been missing for longer than the configured time.
    Expired,
    /// The registry could not be asked, or its answer proves nothing.
    Unknown,
}

impl SessionState {
    pub const ALL: [Self; 4] = [Self::Active, Self::Missing, Self::Expired, Self::Unknown];
}

/// The id of a session, if these bytes can be one.
pub fn session_id(bytes: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(bytes).ok()?;
    let fits = !id.is_empty() && id.len() <= LONGEST_ID && !id.contains(is_hostile);
    fits.then(|| id.to_owned())
}

/// The id of a session as it is shown: only the beginning of a long one.
pub fn shown_session(id: &str) -> String {
    match id.char_indices().nth(SHOWN_WHOLE) {
        Some(_) => id.chars().take(SHOWN).chain("..".chars()).collect(),
        None => id.to_owned(),
    }
}

/// The id of a session in a command line: after `flag`, or behind `flag=`. If there are several, it is not known which
/// of them counts.
pub fn session_in_arguments<'a>(flag: &str, arguments: impl IntoIterator<Item = &'a [u8]>) -> Option<String> {
    let flag = flag.as_bytes();
    let mut found = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == flag {
            found.push(arguments.next().unwrap_or_default());
        } else if let Some(value) = argument.strip_prefix(flag).and_then(|rest| rest.strip_prefix(b"=")) {
            found.push(value);
        }
    }
    match found.as_slice() {
        [only] => session_id(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_bounded_and_harmless() {
        assert_eq!(session_id(b"a-1:\xc3\xa4"), Some("a-1:ä".to_owned()));
        assert_eq!(session_id(&[b'x'; LONGEST_ID]).map(|id| id.len()), Some(LONGEST_ID));
        let bidi = "a\u{202e}b";
        for bad in [&b""[..], b"a\nb", b"a\x1b[2J", b"\xff", &[b'x'; LONGEST_ID + 1], bidi.as_bytes()] {
            assert_eq!(session_id(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_long_id_is_shown_shortened() {
        assert_eq!(shown_session("alice"), "alice");
        assert_eq!(shown_session("twelve chars"), "twelve chars");
        assert_eq!(shown_session("0b8c8f2e-7f5e-4c0d"), "0b8c8f2e..");
    }

    #[test]
    fn an_id_is_found_in_a_command_line() {
        let of = |line: &str| {
            session_in_arguments("--session", line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
        };
        assert_eq!(of("python server.py --session abc"), Some("abc".to_owned()));
        assert_eq!(of("python server.py --session=abc --x"), Some("abc".to_owned()));
        for none in [
            "python server.py",
            "server --session",
            "server --session=",
            "server --sessions=a",
            "server --session a --session=b",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}

//! What goes over the control socket: one line of JSON asks, one line of JSON answers, then the connection is closed.
//!
//! ```json
//! {"version":1,"ask":"status","pss":false}
//! {"version":1,"ask":"plan","request":{"agent":"claude","generation":3}}
//! {"version":1,"ask":"reap","request":{"servers":["1234@229468"]}}
//! {"version":1,"ask":"history","query":{"since":"2026-11-20T00:00:00Z","agent":"claude"}}
//! {"version":1,"ask":"reload"}
//! {"version":1,"answer":"error","error":"..."}
//! ```

use serde::{Deserialize, Serialize};

use orphand_core::model::text;
use orphand_core::model::{History, HistoryQuery, Planned, ReapRequest, Reloaded, Status};

/// The version of this protocol.
pub const VERSION: u32 = 1;

/// Bytes of a question. A request that names 10,000 servers has some 250 kB.
pub const REQUEST_MAX: usize = 256 * 1024;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// How the daemon stands.
    Status {
        /// Whether to measure proportional memory, too.
        #[serde(default)]
        pss: bool,
    },
    /// Which servers this means.
    Plan {
        /// Which.
        request: ReapRequest,
    },
    /// End them.
    Reap {
        /// Which.
        request: ReapRequest,
    },
    /// Read the configuration again.
    Reload,
    /// What the store tells.
    History {
        /// Of what.
        query: HistoryQuery,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`].
    Status {
        /// How the daemon stands.
        status: Box<Status>,
    },
    /// To [`Ask::Plan`] and [`Ask::Reap`].
    Plan {
        /// The servers meant.
        planned: Vec<Planned>,
    },
    /// To [`Ask::Reload`].
    Reloaded {
        /// What became of it.
        reloaded: Reloaded,
    },
    /// To [`Ask::History`].
    History {
        /// The past.
        history: Box<History>,
    },
    /// The question was not understood, not allowed, or not answered.
    Error {
        /// One line.
        error: String,
    },
}

/// A question or an answer on the wire.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// One line, its line feed included. A terminal obeys nothing in it: who asks may be `socat`.
pub fn write<T: Serialize>(content: T) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_string(&Line { version: VERSION, content })?;
    let mut line = String::with_capacity(json.len() + 1);
    text::push_json(&json, &mut line);
    line.push('\n');
    Ok(line.into_bytes())
}

/// What a line says; the error is one line for the other side.
pub fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    let bad = |error: serde_json::Error| format!("not understood: {error}");
    let Version { version } = serde_json::from_slice(line).map_err(bad)?;
    if version != VERSION {
        return Err(format!(
            "version {version} is not spoken here, only {VERSION}: use the same orphand on both sides"
        ));
    }
    serde_json::from_slice(line).map(|Line { content, .. }| content).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        let error = read::<Ask>(line.as_bytes()).unwrap_err();
        assert!(!error.contains('\n'), "{error:?}");
        error
    }

    #[test]
    fn there_and_back() {
        let request = ReapRequest { servers: Some(vec!["1@2".to_owned()]), ..ReapRequest::default() };
        let query = HistoryQuery { agent: Some("claude".to_owned()), ..HistoryQuery::default() };
        for ask in [
            Ask::Status { pss: true },
            Ask::Plan { request: request.clone() },
            Ask::Reap { request },
            Ask::Reload,
            Ask::History { query },
        ] {
            let line = write(&ask).unwrap();
            assert_eq!(line.iter().position(|b| *b == b'\n'), Some(line.len() - 1));
            assert_eq!(read::<Ask>(&line).unwrap(), ask);
        }
        for answer in [Answer::Status { status: Box::default() }, Answer::History { history: Box::default() }]
        {
            assert_eq!(read::<Answer>(&write(&answer).unwrap()).unwrap(), answer);
        }
        assert_eq!(read::<Ask>(br#"{"version":1,"ask":"status"}"#).unwrap(), Ask::Status { pss: false });
    }

    #[test]
    fn a_terminal_obeys_nothing() {
        let error = "a\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\n".to_owned();
        let line = String::from_utf8(write(Answer::Error { error: error.clone() }).unwrap()).unwrap();
        assert!(!line.trim_end().contains(text::is_hostile), "{line:?}");
        assert_eq!(read::<Answer>(line.as_bytes()).unwrap(), Answer::Error { error });
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        assert!(refused("").starts_with("not understood: "));
        assert!(refused("reap\n").starts_with("not understood: "));
        assert!(refused(r#"{"ask":"status"}"#).contains("missing field `version`"));
        assert!(
            refused(r#"{"version":2,"ask":"status"}"#).starts_with("version 2 is not spoken here, only 1")
        );
        assert!(refused(r#"{"version":1,"ask":"kill"}"#).contains("unknown variant `kill`"));
        // A misspelt filter must not mean "all".
        let error = refused(r#"{"version":1,"ask":"reap","request":{"agnet":"claude"}}"#);
        assert!(error.contains("unknown field `agnet`"), "{error}");
        let error = refused(r#"{"version":1,"ask":"history","query":{"agnet":"claude"}}"#);
        assert!(error.contains("unknown field `agnet`"), "{error}");
        assert!(refused(r#"{"version":1,"ask":"reap"}"#).contains("missing field `request`"));
    }
}

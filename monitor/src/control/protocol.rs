//! The protocol of the control socket: a request is one line of JSON, a response is one line of JSON, then the
//! connection is closed. The exception is `events`: after the response come the lines of the stream as they are, one
//! an event, with `follow` until one side closes the connection.
//!
//! ```json
//! {"version":1,"ask":"status","pss":false}
//! {"version":1,"ask":"plan","request":{"agent":"claude","generation":3}}
//! {"version":1,"ask":"reap","request":{"servers":["1234@229468"]}}
//! {"version":1,"ask":"history","query":{"since":"2026-11-20T00:00:00Z","agent":"claude"}}
//! {"version":1,"ask":"reload"}
//! {"version":1,"ask":"decide","decision":{"decide":"pause","for_ms":600000}}
//! {"version":1,"ask":"release","request":{"targets":[{"pid":4711}]}}
//! {"version":1,"ask":"explain","process":{"pid":4711}}
//! {"version":1,"ask":"events","query":{"since":"2026-11-20T00:00:00Z","follow":true}}
//! {"version":1,"answer":"error","error":"..."}
//! ```

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::events::{EventQuery, Position};
use orphand_core::model::{
    Asked, Decided, Decision, Explained, History, HistoryQuery, ReapRequest, ReleaseRequest, Released,
    Reloaded, ServerReport, Status, text,
};

pub const VERSION: u32 = 1;

/// The size limit of a request in bytes. A request that names 10,000 servers has some 250 kB.
pub const REQUEST_MAX: usize = 256 * 1024;

/// The size limit of a request of users who may only release servers of their own.
pub const RELEASE_MAX: usize = 8 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    Status {
        #[serde(default)]
        pss: bool,
    },
    Plan {
        request: ReapRequest,
    },
    /// End them. Not done if the client no longer waits.
    Reap {
        request: ReapRequest,
        /// As in [`Request::Decide`].
        #[serde(default)]
        on_behalf_of: Option<String>,
    },
    /// Somebody is done with servers of his own. The one request that every user may send.
    Release {
        request: ReleaseRequest,
    },
    /// Read the configuration again. Where it has a mistake, the old one stays.
    Reload,
    /// Take a person's decision about the mode into effect. Not done if the client no longer waits.
    Decide {
        decision: Decision,
        /// The user for whom root asks, as sudo(8) says it; of other users it is not believed.
        #[serde(default)]
        on_behalf_of: Option<String>,
    },
    History {
        query: HistoryQuery,
    },
    Explain {
        process: Asked,
    },
    Events {
        query: EventQuery,
    },
}

/// What was asked for, in a field of the name that the answer has, or nearly so: `{"version":1,"answer":"plan","planned":[..]}`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// With memory as it was measured just now.
    Status {
        status: Box<Status>,
    },
    /// To [`Request::Plan`] and [`Request::Reap`]: the servers that are selected, for a reap those at the start.
    Plan {
        planned: Vec<ServerReport>,
    },
    /// The servers that were meant, released or not.
    Released {
        released: Vec<Released>,
    },
    Reloaded {
        reloaded: Reloaded,
    },
    Decided {
        decided: Decided,
    },
    History {
        history: Box<History>,
    },
    /// The processes that are meant; empty if none of them is followed.
    Explained {
        explained: Vec<Explained>,
    },
    /// Where the events of this daemon begin, for [`crate::events::Cursor`]. The lines follow.
    Events {
        life: Position,
    },
    /// The request was not understood, not allowed, or not answered: why, as one line.
    Error(Refusal),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub error: String,
    /// Whether this user may not ask: who is not told looks for himself.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forbidden: bool,
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(error: T) -> Self {
        Self { error: error.into(), forbidden: false }
    }
}

/// Reads what was asked for. The error is that of the other side, or says that this is no answer to the question.
pub fn read_answer<T: DeserializeOwned>(line: &[u8]) -> Result<T, Refusal> {
    let mut all: serde_json::Map<String, Value> = read(line)?;
    let found = if all.remove("answer").is_some_and(|answer| answer == "error") {
        serde_json::from_value(Value::Object(all)).map(Err).ok()
    } else {
        let found = all.into_iter().next().map(|(_, found)| found);
        found.and_then(|found| serde_json::from_value(found).map(Ok).ok())
    };
    found.unwrap_or_else(|| {
        Err("the answer does not fit the request; use the same version of orphand for daemon and client"
            .into())
    })
}

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

/// A request or an answer as a line. It is safe for a terminal, because the client may be `socat`.
pub fn write(content: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_string(&Line { version: VERSION, content })?;
    let mut line = String::with_capacity(json.len() + 1);
    text::push_json(&json, &mut line);
    Ok((line + "\n").into_bytes())
}

/// Decodes a line. The error is one line for the other side.
pub fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    let bad = |error: serde_json::Error| format!("not understood: {error}");
    let Version { version } = serde_json::from_slice(line).map_err(bad)?;
    if version != VERSION {
        return Err(format!(
            "version {version} of the protocol is not supported, only {VERSION}: use the same version of orphand for daemon and client"
        ));
    }
    serde_json::from_slice(line).map(|Line { content, .. }| content).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        let error = read::<Request>(line.as_bytes()).unwrap_err();
        assert!(!error.contains('\n'), "{error:?}");
        error
    }

    #[test]
    fn there_and_back() {
        let request = ReapRequest { servers: Some(vec!["1@2".to_owned()]), ..ReapRequest::default() };
        let query = HistoryQuery { agent: Some("claude".to_owned()), ..HistoryQuery::default() };
        for ask in [
            Request::Status { pss: true },
            Request::Plan { request: request.clone() },
            Request::Reap { request, on_behalf_of: None },
            Request::Release { request: ReleaseRequest { targets: vec![Asked::Pid(7)], session: None } },
            Request::Reload,
            Request::Decide { decision: Decision::Pause { for_ms: Some(5) }, on_behalf_of: None },
            Request::History { query },
            Request::Explain { process: Asked::Pid(7) },
            Request::Events { query: EventQuery { follow: true, ..EventQuery::default() } },
        ] {
            let line = write(&ask).unwrap();
            assert_eq!(line.iter().position(|b| *b == b'\n'), Some(line.len() - 1));
            assert_eq!(read::<Request>(&line).unwrap(), ask);
        }
        let line =
            write(&Answer::Reloaded { reloaded: Reloaded { later: vec!["grace".to_owned()] } }).unwrap();
        let told = "{\"version\":1,\"answer\":\"reloaded\",\"reloaded\":{\"later\":[\"grace\"]}}\n";
        assert_eq!(line, told.as_bytes());
        assert_eq!(read_answer::<Reloaded>(&line).unwrap().later, ["grace"]);
        assert!(read_answer::<u32>(&line).unwrap_err().error.contains("does not fit"));
        assert_eq!(
            read::<Request>(br#"{"version":1,"ask":"status"}"#).unwrap(),
            Request::Status { pss: false }
        );
    }

    #[test]
    fn a_terminal_obeys_nothing() {
        let error = "a\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\n".to_owned();
        let refusal = Refusal { error, forbidden: true };
        let line = String::from_utf8(write(&Answer::Error(refusal.clone())).unwrap()).unwrap();
        assert!(!line.trim_end().contains(text::is_hostile), "{line:?}");
        assert_eq!(read_answer::<u32>(line.as_bytes()), Err(refusal));
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        assert!(refused("").starts_with("not understood: "));
        assert!(refused("reap\n").starts_with("not understood: "));
        assert!(refused(r#"{"ask":"status"}"#).contains("missing field `version`"));
        assert!(
            refused(r#"{"version":2,"ask":"status"}"#)
                .starts_with("version 2 of the protocol is not supported, only 1")
        );
        assert!(refused(r#"{"version":1,"ask":"kill"}"#).contains("unknown variant `kill`"));
        // A misspelt filter must not select everything.
        let error = refused(r#"{"version":1,"ask":"reap","request":{"agnet":"claude"}}"#);
        assert!(error.contains("unknown field `agnet`"), "{error}");
        let error = refused(r#"{"version":1,"ask":"history","query":{"agnet":"claude"}}"#);
        assert!(error.contains("unknown field `agnet`"), "{error}");
        let error = refused(r#"{"version":1,"ask":"events","query":{"folow":true}}"#);
        assert!(error.contains("unknown field `folow`"), "{error}");
        let error = refused(r#"{"version":1,"ask":"release","request":{"pid":7}}"#);
        assert!(error.contains("unknown field `pid`"), "{error}");
        assert!(refused(r#"{"version":1,"ask":"reap"}"#).contains("missing field `request`"));
    }
}

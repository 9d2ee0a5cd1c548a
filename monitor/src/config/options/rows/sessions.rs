//! The rows of `[sessions]`.

use super::Key;

pub(super) const SESSIONS: &[Key] = &[
    Key {
        name: "redis",
        form: "redis://HOST:PORT/DB",
        default: Some("\"redis://127.0.0.1:6379/0\""),
        limits: "with USER:PASSWORD@ before the host where one is needed; no TLS",
        about: "Where the registry is. A password is never shown: keep the file unreadable for others.",
        example: "\"redis://:PASSWORD@10.0.0.5:6379/0\"",
    },
    Key {
        name: "variable",
        form: "the name of an environment variable",
        default: Some("\"MCP_SESSION_ID\""),
        limits: "not together with flag",
        about: "The variable in the environment of a server that has the id of its session. An id that its manager has in \
                its own environment does not count.",
        example: "\"SESSION\"",
    },
    Key {
        name: "flag",
        form: "an argument",
        default: None,
        limits: "begins with -; not together with variable",
        about: "The argument of a server that the id of its session follows, as \"--session ID\" or \"--session=ID\".",
        example: "\"--session\"",
    },
    Key {
        name: "key",
        form: "a text with {id} in it",
        default: Some("\"mcp:session:{id}\""),
        limits: "",
        about: "The name of the key of a session. Only whether the key exists matters, not its type or its value.",
        example: "\"gateway:{id}:state\"",
    },
    Key {
        name: "idle",
        form: "a duration",
        default: Some("\"5m\""),
        limits: "1s to 24h",
        about: "How long the key must be missing, in every answer, until the session has expired. The registry is asked \
                20 times in that time, four times a minute at least.",
        example: "\"10m\"",
    },
];

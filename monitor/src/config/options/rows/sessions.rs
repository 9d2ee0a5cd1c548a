//! The rows of `[sessions]`.

use super::Key;

pub(super) const SESSIONS: &[Key] = &[
    Key {
        name: "redis",
        form: "redis://HOST:PORT/DB",
        default: Some("\"redis://127.0.0.1:6379/0\""),
        limits: "with USER:PASSWORD@ before the host where one is needed; no TLS",
        about: "Where the registry is. The variables REDIS_HOST and REDIS_PORT are its default where they are set. A \
                password is never shown: keep the file unreadable for others.",
        example: "\"redis://:PASSWORD@10.0.0.5:6379/0\"",
    },
    Key {
        name: "uid",
        form: "a number of a user",
        default: None,
        limits: "of this host",
        about: "The user that Redis runs as, if that is a person. While Redis is down, any user may listen at its port: a \
                password is sent to processes of root, of users below 1000 (services of the system), of orphand's own \
                user and of this one.",
        example: "1001",
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
        about: "How long the key must be missing, in every answer, until the session has expired. The variable \
                MCP_SESSION_IDLE_TTL (seconds) is its default where it is set.",
        example: "\"10m\"",
    },
    Key {
        name: "interval",
        form: "a duration",
        default: Some("\"15s\""),
        limits: "100ms to 1h",
        about: "The time from one question to the registry to the next, while servers with a session live. The variable \
                MCP_PROCESS_CLEANUP_INTERVAL (seconds) is its default where it is set.",
        example: "\"1m\"",
    },
];

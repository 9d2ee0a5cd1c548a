//! The keys of rules: `[[agent]]`, `[[server]]` and the like.

use super::Key;

/// The keys of every kind of rule.
pub(super) const RULE: &[Key] = &[
    Key {
        name: "name",
        form: "a text",
        default: None,
        limits: "1 to 64 printable characters",
        about: "The name that events, tables and metrics show. Every rule needs one.",
        example: "\"inventory\"",
    },
    Key {
        name: "program",
        form: "a pattern",
        default: None,
        limits: "a name without folders",
        about: "The name in program position: the executable, the script behind its interpreter (with or without \
                extension), the command of npx, uvx or pnpm exec, the image of docker run -i. Not the name of an \
                interpreter or shell: for the programs that those run, use script, module and package.",
        example: "\"mybot\"",
    },
    Key {
        name: "package",
        form: "a pattern",
        default: None,
        limits: "",
        about: "The package that the program belongs to, with or without scope, and without version.",
        example: "\"@me/broker-mcp\"",
    },
    Key {
        name: "module",
        form: "a pattern",
        default: None,
        limits: "",
        about: "The module of python -m.",
        example: "\"inventory.server\"",
    },
    Key {
        name: "script",
        form: "a pattern",
        default: None,
        limits: "",
        about: "The script of an interpreter as it was written on the command line, including folders.",
        example: "\"/srv/tools/server.py\"",
    },
    Key {
        name: "exe",
        form: "a pattern",
        default: None,
        limits: "",
        about: "The path of the executable; for a script, that of its interpreter.",
        example: "\"/opt/mybot/bin/*\"",
    },
    Key {
        name: "args",
        form: "a list of patterns",
        default: None,
        limits: "",
        about: "The first arguments after the program, one pattern each. Further arguments do not matter.",
        example: "[\"run\"]",
    },
    Key {
        name: "unit",
        form: "a pattern",
        default: None,
        limits: "the name of a service; [[agent]] and [[exempt]] only, and without a pattern of a program",
        about: "A systemd unit. The agent is the main process of the unit, whatever that runs. Exempt are the servers in the unit.",
        example: "\"gateway@*.service\"",
    },
    Key {
        name: "user",
        form: "the name or number of a user",
        default: None,
        limits: "[[exempt]] only, and without a pattern of a program",
        about: "Exempt are the servers that run as this user; with unit, those of them in the unit.",
        example: "\"alice\"",
    },
    Key {
        name: "reap",
        form: "true or false",
        default: Some("false"),
        limits: "[[agent]] only",
        about: "Whether such an agent is to be ended when its unit was stopped or restarted without it. If not, it is \
                only reported.",
        example: "true",
    },
    Key {
        name: "daemon",
        form: "true or false",
        default: Some("false"),
        limits: "[[agent]] only",
        about: "Whether such an agent is meant to outlive whoever started it. It is never reported as left behind, and \
                its servers are counted for a run of its own.",
        example: "true",
    },
    Key {
        name: "thread_scoped",
        form: "true or false",
        default: Some("false"),
        limits: "[[agent]] only",
        about: "Whether such an agent runs each job in a thread of its own, and a server that a thread started is of no use to \
                other threads: it is left behind when that thread ends without closing it.",
        example: "true",
    },
    Key {
        name: "grace",
        form: "a duration",
        default: None,
        limits: "0s to 24h; [[agent]] only",
        about: "How long a server of such an agent may outlive it before it is judged, in place of the grace for all. It counts \
                for every agent that has the name of the rule.",
        example: "\"1m\"",
    },
    Key {
        name: "kind",
        form: "\"multiplexer\", \"supervisor\" or \"launcher\"",
        default: None,
        limits: "[[program]] only, and always needed there",
        about: "What such a program is.",
        example: "\"launcher\"",
    },
];

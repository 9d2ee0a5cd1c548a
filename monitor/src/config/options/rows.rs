//! The rows of the table of options.

use super::{Key, Kind, Section};

/// All sections, in the order of the documentation.
pub const SECTIONS: &[Section; 7] = &[
    Section { name: "", kind: Kind::Top, about: "The keys above every table.", keys: TOP, example: "" },
    Section {
        name: "hook",
        kind: Kind::List,
        about: "A program that runs for events, one run of each at a time and never through a shell. Its argument is the name of the \
                event; the event is on its standard input as JSON, and in the variables ORPHAND_EVENT, ORPHAND_AGENT, \
                ORPHAND_GENERATION, ORPHAND_ORPHANS, ORPHAND_RSS_BYTES and ORPHAND_SERVER. After 10 s a run is killed, with everything \
                that it started.",
        keys: HOOK,
        example: "path = \"/etc/orphand/hook\"\nuser = \"nobody\"\nevents = [\"orphan_reaped\"]\n",
    },
    Section {
        name: "sessions",
        kind: Kind::Table,
        about: "The registry (Redis) in which a manager keeps its sessions, where it starts servers for each session. The \
                server of a session that has expired is ended though its manager lives. The table alone, even an empty one, \
                turns this on.",
        keys: SESSIONS,
        example: "redis = \"redis://127.0.0.1:6379/0\"\nvariable = \"MCP_SESSION_ID\"\nkey = \"mcp:session:{id}\"\nidle = \"5m\"\n",
    },
    Section {
        name: "containers",
        kind: Kind::Table,
        about: "The container engines that are asked which container a client works for, and that stop an orphan's container. \
                Without its engine an orphan in a container is reported, and stays. A socket of an engine gives the rights of \
                root: a helper without capabilities opens it, to list and inspect containers and to stop one. Read at the start.",
        keys: CONTAINERS,
        example: "docker = \"/run/docker.sock\"\n",
    },
    Section {
        name: "exempt",
        kind: Kind::List,
        about: "What is left alone, with all that it starts: it is followed, judged and reported, and never ended.",
        keys: RULE,
        example: "name = \"shared broker\"\nprogram = \"@me/broker-mcp\"\n",
    },
    Section {
        name: "agent",
        kind: Kind::List,
        about: "Agents that no built-in rule knows, by their program or by the systemd unit whose main process they are.",
        keys: RULE,
        example: "name = \"gateway\"\nunit = \"gateway.service\"\n",
    },
    Section {
        name: "program",
        kind: Kind::List,
        about: "Other programs that no built-in rule knows, by their kind. A server is an MCP server; such a rule alone ends nothing: a \
                process is a server only if its standard input is a pipe or socket that its owner created, and an orphan only if \
                that owner is gone. A launcher starts another program on its own standard streams, like npx or timeout: it is part of \
                a server's launch chain, and not its owner. A supervisor hosts or adopts others, like init or sshd, and is never an \
                agent. A multiplexer is like tmux: what lives in one has no owner.",
        keys: RULE,
        example: "name = \"inventory\"\nprogram = \"inventory_server.py\"\nkind = \"server\"\n",
    },
];

const TOP: &[Key] = &[
    Key {
        name: "observe",
        value: "true or false",
        default: Some("false"),
        about: "Judge and report, never send a signal. Begin with this on a host that matters.",
        example: "true",
    },
    Key {
        name: "found",
        value: "\"ask\" or \"end\"",
        default: Some("\"ask\""),
        about: "What is done about servers that were there before orphand was started on this host for the first time, and that \
                nobody can reach. With ask they are reported and stay (guard found) until a person ends them: sudo orphand reap. \
                With end they are ended like the rest. What is left behind from then on is ended either way.",
        example: "\"end\"",
    },
    Key {
        name: "grace",
        value: "a duration, 0s to 24h",
        default: Some("\"10s\""),
        about: "How long a server may outlive its owner before it is judged. A well-behaved server exits by itself within \
                this time, and nothing is done.",
        example: "\"30s\"",
    },
    Key {
        name: "abandoned_grace",
        value: "a duration, 0s to 24h",
        default: Some("\"30s\""),
        about: "How long a server may go on after its owner, which is alive, abandoned it: let go of its standard input and \
                output, or closed its standard input after the head of its launch chain was ended by a signal. Also the \
                grace of other servers that are left behind under a living owner.",
        example: "\"2m\"",
    },
    Key {
        name: "work_grace",
        value: "a duration, 0s to 24h",
        default: Some("\"5m\""),
        about: "How long a tool that an orphaned server started may go on with its work (it uses the processor, reads or \
                writes) before the server is ended with it. A tool that does nothing is not waited for, nor is a browser.",
        example: "\"1m\"",
    },
    Key {
        name: "recognise_protocol",
        value: "true or false",
        default: Some("true"),
        about: "Whether a program that no rule knows is a server if the first message on its standard input is one of the \
                Model Context Protocol. The message is read without being taken, and nothing of it is kept but this fact \
                and the name of the client. What no agent has started is looked at if this was so at the start.",
        example: "false",
    },
    Key {
        name: "listen",
        value: "\"ADDRESS:PORT\" or \"none\"",
        default: Some("\"127.0.0.1:9477\""),
        about: "The address for the page, metrics and health over HTTP; none turns it off. There is no authentication: every client \
                that can reach the address can read them.",
        example: "\"none\"",
    },
    Key {
        name: "alert",
        value: "a list of lines: WHAT > LIMIT; of AGENT before the limit counts only agents of this name or systemd unit; for TIME after \
                it is how long it must stay crossed, in TIME (1h) the time in which events are counted",
        default: Some("[]"),
        about: "Thresholds: the event alert is emitted when one is crossed, alert_resolved when it is not any more. WHAT is orphans that are \
                alive (orphans); their resident memory in bytes, or with K, M, G or T, powers of 1024 (rss); the CPU time of orphans \
                and unproven servers over the last minute, in percent of one CPU (cpu); orphans detected within a time (rate); \
                orphans that could not be ended within a time (reap_failures); or, without a limit, whether records of the kernel \
                are lost and /proc has not been read again (blind). From one alert of a line to the next it takes 10 min at least.",
        example: "[\"orphans of claude > 10 for 1m\", \"rss > 4G\", \"rate > 20 in 1h\", \"blind\"]",
    },
];

const HOOK: &[Key] = &[
    Key {
        name: "path",
        value: "a path, absolute; only root and orphand's own user may be able to write the file and the directories above it; always needed",
        default: None,
        about: "The program.",
        example: "\"/etc/orphand/hook\"",
    },
    Key {
        name: "user",
        value: "a user's name, another than orphand's own takes root, or CAP_SETUID and CAP_SETGID",
        default: None,
        about: "The user it runs as, with that user's primary group and no others, and without capabilities. Without it the user that the \
                variable ORPHAND_HOOK_USER names, else orphand's own.",
        example: "\"nobody\"",
    },
    Key {
        name: "events",
        value: "a list of event names, or [\"all\"]",
        default: Some(
            "[\"alert\", \"alert_resolved\", \"lost\", \"orphan_detected\", \"orphan_exited\", \"orphan_reaped\", \
             \"orphan_spared\", \"reap_failed\"]",
        ),
        about: "The events that it runs for.",
        example: "[\"alert\", \"alert_resolved\"]",
    },
];

const SESSIONS: &[Key] = &[
    Key {
        name: "redis",
        value: "redis://HOST:PORT/DB, with USER:PASSWORD@ before the host where one is needed; no TLS",
        default: Some("\"redis://127.0.0.1:6379/0\""),
        about: "Where the registry is. A password is never shown: keep the file unreadable for others.",
        example: "\"redis://:PASSWORD@10.0.0.5:6379/0\"",
    },
    Key {
        name: "variable",
        value: "the name of an environment variable, not together with flag",
        default: Some("\"MCP_SESSION_ID\""),
        about: "The variable in the environment of a server that has the id of its session. An id that its manager has in \
                its own environment does not count.",
        example: "\"SESSION\"",
    },
    Key {
        name: "flag",
        value: "an argument, begins with -; not together with variable",
        default: None,
        about: "The argument of a server that the id of its session follows, as \"--session ID\" or \"--session=ID\".",
        example: "\"--session\"",
    },
    Key {
        name: "key",
        value: "a text with {id} in it",
        default: Some("\"mcp:session:{id}\""),
        about: "The name of the key of a session. Only whether the key exists matters, not its type or its value.",
        example: "\"gateway:{id}:state\"",
    },
    Key {
        name: "idle",
        value: "a duration, 1s to 24h",
        default: Some("\"5m\""),
        about: "How long the key must be missing, in every answer, until the session has expired. The registry is asked \
                20 times in that time, four times a minute at least.",
        example: "\"10m\"",
    },
];

const CONTAINERS: &[Key] = &[
    Key {
        name: "docker",
        value: "a path, absolute",
        default: None,
        about: "The socket of Docker. Without it Docker is not asked.",
        example: "\"/run/docker.sock\"",
    },
    Key {
        name: "podman",
        value: "a path, absolute",
        default: None,
        about: "The socket of root's podman (podman.socket). Without it podman is not asked. The containers of other users, who \
                have a podman of their own, are reported and stay.",
        example: "\"/run/podman/podman.sock\"",
    },
];

/// The keys of every kind of rule.
const RULE: &[Key] = &[
    Key {
        name: "name",
        value: "a text, 1 to 64 printable characters",
        default: None,
        about: "The name that events, tables and metrics show. Every rule needs one.",
        example: "\"inventory\"",
    },
    Key {
        name: "program",
        value: "a pattern, or several with blanks between them",
        default: None,
        about: "The program, by what a person knows it by: its name (the executable, the script behind its interpreter with or without \
                extension, the command of npx, uvx or pnpm exec, the image of docker run -i), its package with or without scope, or the \
                module of python -m. With a / it is a path: of the script as it was written on the command line, or of the executable. \
                Further words are the first arguments. Not the name of an interpreter or shell: name what that runs.",
        example: "\"mybot run\"",
    },
    Key {
        name: "unit",
        value: "a pattern, the name of a service, in [[exempt]] also of a slice; [[agent]] and [[exempt]] only, and without program",
        default: None,
        about: "A systemd unit. The agent is the main process of the service, whatever that runs. Exempt are the servers in the \
                service, or below the slice.",
        example: "\"gateway@*.service\"",
    },
    Key {
        name: "user",
        value: "the name or number of a user, [[exempt]] only, and without program",
        default: None,
        about: "Exempt are the servers that run as this user; with unit, those of them in the unit.",
        example: "\"alice\"",
    },
    Key {
        name: "reap",
        value: "true or false, [[agent]] only",
        default: Some("false"),
        about: "Whether such an agent is to be ended when its unit was stopped or restarted without it. If not, it is \
                only reported.",
        example: "true",
    },
    Key {
        name: "daemon",
        value: "true or false, [[agent]] only",
        default: Some("false"),
        about: "Whether such an agent is meant to outlive whoever started it. It is never reported as left behind, and \
                its servers are counted for a run of its own.",
        example: "true",
    },
    Key {
        name: "thread_scoped",
        value: "true or false, [[agent]] only",
        default: Some("false"),
        about: "Whether such an agent runs each job in a thread of its own, and a server that a thread started is of no use to \
                other threads: it is left behind when that thread ends without closing it.",
        example: "true",
    },
    Key {
        name: "grace",
        value: "a duration, 0s to 24h; [[agent]] only",
        default: None,
        about: "How long a server of such an agent may outlive it before it is judged, in place of the grace for all. It counts \
                for every agent that has the name of the rule.",
        example: "\"1m\"",
    },
    Key {
        name: "idle_duplicates",
        value: "a duration, 1s to 24h; [[agent]] only",
        default: None,
        about: "How long a duplicate server of such an agent must do nothing at all, while a newer server of the same identity \
                is in use, until it is ended although the agent lives. Without it no duplicate is ended.",
        example: "\"4h\"",
    },
    Key {
        name: "kind",
        value: "\"server\", \"launcher\", \"supervisor\" or \"multiplexer\", [[program]] only, and always needed there",
        default: None,
        about: "What such a program is.",
        example: "\"server\"",
    },
];

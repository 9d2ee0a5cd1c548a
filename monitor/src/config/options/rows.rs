//! The rows of the table of options.

mod rules;
mod sessions;

use self::{rules::RULE, sessions::SESSIONS};
use super::{Key, Kind, Section};

/// All sections, in the order of the documentation.
pub const SECTIONS: &[Section] = &[
    Section { name: "", kind: Kind::Top, about: "The keys above every table.", keys: TOP, example: "" },
    Section {
        name: "hook",
        kind: Kind::List,
        about: "A program that runs for events, one run of each at a time and never through a shell. Its argument is the name of the \
                event; the event is on its standard input as JSON, and in the variables ORPHAND_EVENT, ORPHAND_AGENT, \
                ORPHAND_GENERATION, ORPHAND_ORPHANS, ORPHAND_RSS_BYTES and ORPHAND_SERVER.",
        keys: HOOK,
        example: "path = \"/etc/orphand/hook\"\nuser = \"nobody\"\nevents = [\"alert\", \"alert_resolved\"]\n",
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
        example: "name = \"shared broker\"\npackage = \"@me/broker-mcp\"\n",
    },
    Section {
        name: "server",
        kind: Kind::List,
        about: "MCP servers that no built-in rule knows. A rule alone ends nothing: a process is a server only \
                if its standard input is a pipe or socket that its owner created, and an orphan only if that owner is gone.",
        keys: RULE,
        example: "name = \"inventory\"\nscript = \"inventory_server.py\"\n",
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
        about: "Other programs that no built-in rule knows, by their kind. A multiplexer is like tmux: what lives in one has no \
                owner. A supervisor hosts or adopts others, like init or sshd, and is never an agent. A launcher starts another \
                program on its own standard streams, like npx or timeout: it is part of a server's launch chain, and not its \
                owner.",
        keys: RULE,
        example: "name = \"with-secrets\"\nprogram = \"with-secrets\"\nkind = \"launcher\"\n",
    },
    Section {
        name: "alert",
        kind: Kind::List,
        about: "Thresholds: the event alert is emitted when one is crossed, alert_resolved when it is not any more.",
        keys: ALERT,
        example: "name = \"claude leaks\"\non = \"orphans\"\nabove = 10\nagent = \"claude\"\nfor = \"1m\"\n",
    },
];

const TOP: &[Key] = &[
    Key {
        name: "observe",
        form: "true or false",
        default: Some("false"),
        limits: "",
        about: "Judge and report, never send a signal. Begin with this on a host that matters.",
        example: "true",
    },
    Key {
        name: "found",
        form: "\"ask\" or \"end\"",
        default: Some("\"ask\""),
        limits: "",
        about: "What is done about servers that were there before orphand was started on this host for the first time, and that \
                nobody can reach. With ask they are reported and stay (guard found) until a person ends them: sudo orphand reap. \
                With end they are ended like the rest. What is left behind from then on is ended either way.",
        example: "\"end\"",
    },
    Key {
        name: "grace",
        form: "a duration",
        default: Some("\"10s\""),
        limits: "0s to 24h",
        about: "How long a server may outlive its owner before it is judged. A well-behaved server exits by itself within \
                this time, and nothing is done.",
        example: "\"30s\"",
    },
    Key {
        name: "abandoned_grace",
        form: "a duration",
        default: Some("\"30s\""),
        limits: "0s to 24h",
        about: "How long a server may go on after its owner, which is alive, abandoned it: let go of its standard input and \
                output, or closed its standard input after the head of its launch chain was ended by a signal. Also the \
                grace of other servers that are left behind under a living owner.",
        example: "\"2m\"",
    },
    Key {
        name: "work_grace",
        form: "a duration",
        default: Some("\"5m\""),
        limits: "0s to 24h",
        about: "How long a tool that an orphaned server started may go on with its work (it uses the processor, reads or \
                writes) before the server is ended with it. A tool that does nothing is not waited for, nor is a browser.",
        example: "\"1m\"",
    },
    Key {
        name: "term_timeout",
        form: "a duration",
        default: Some("\"5s\""),
        limits: "0s to 24h",
        about: "The time from SIGTERM to SIGKILL when a server is ended.",
        example: "\"10s\"",
    },
    Key {
        name: "other_uids",
        form: "true or false",
        default: Some("false"),
        limits: "",
        about: "Whether a server that runs as another user than its owner may be ended. If not, it is spared with the \
                guard other_uid.",
        example: "true",
    },
    Key {
        name: "recognise_protocol",
        form: "true or false",
        default: Some("true"),
        limits: "",
        about: "Whether a program that no rule knows is a server if the first message on its standard input is one of the \
                Model Context Protocol. The message is read without being taken, and nothing of it is kept but this fact \
                and the name of the client. What no agent has started is looked at if this was so at the start.",
        example: "false",
    },
    Key {
        name: "listen",
        form: "\"ADDRESS:PORT\" or \"none\"",
        default: Some("\"127.0.0.1:9477\""),
        limits: "",
        about: "The address for the page, metrics and health over HTTP; none turns it off. There is no authentication: every client \
                that can reach the address can read them.",
        example: "\"none\"",
    },
    Key {
        name: "socket",
        form: "a path",
        default: Some("\"/run/orphand/control.sock\""),
        limits: "",
        about: "The control socket, which orphand ps, status, top, explain, reap, reload and history use.",
        example: "\"/run/orphand/other.sock\"",
    },
    Key {
        name: "socket_group",
        form: "the name of a group",
        default: None,
        limits: "",
        about: "The group whose members may use the control socket, besides root and the daemon's own user. They can end \
                everything that orphand may end, including other users' servers.",
        example: "\"agents\"",
    },
    Key {
        name: "state_dir",
        form: "a path",
        default: Some("\"/var/lib/orphand\""),
        limits: "",
        about: "The directory of the store: what outlives a restart of the daemon. Only root and the daemon's user may \
                write there.",
        example: "\"/srv/orphand\"",
    },
];

const ALERT: &[Key] = &[
    Key {
        name: "name",
        form: "a text",
        default: None,
        limits: "always needed",
        about: "Its name, shown with every alert.",
        example: "\"too many orphans\"",
    },
    Key {
        name: "on",
        form: "orphans, rss, cpu, rate, reap_failures or blind",
        default: None,
        limits: "always needed",
        about: "What it watches: orphans that are alive; their resident memory; the CPU time of orphans and unproven \
                servers over the last minute; orphans detected within a time; orphans \
                that could not be ended within a time; or whether records of the kernel are lost and /proc has not been \
                read again.",
        example: "\"orphans\"",
    },
    Key {
        name: "above",
        form: "a number; for rss in bytes, or with K, M, G or T (powers of 1024); for cpu in percent of one CPU",
        default: None,
        limits: "required, but not allowed for blind",
        about: "The threshold. The alert is raised when the value is above it.",
        example: "10",
    },
    Key {
        name: "agent",
        form: "a text",
        default: None,
        limits: "not allowed for blind",
        about: "Count only agents with this name, or of this systemd unit, and their servers. Without it the whole host counts.",
        example: "\"claude\"",
    },
    Key {
        name: "for",
        form: "a duration",
        default: None,
        limits: "at most a day",
        about: "How long it must stay crossed before the alert is emitted (0s). For rate and reap_failures the time in which \
                events are counted (1h).",
        example: "\"1m\"",
    },
    Key {
        name: "cooldown",
        form: "a duration",
        default: Some("\"10m\""),
        limits: "at most a day",
        about: "From one alert of this rule to the next, at least. What comes and goes meanwhile is not reported.",
        example: "\"1h\"",
    },
];

const CONTAINERS: &[Key] = &[
    Key {
        name: "docker",
        form: "a path",
        default: None,
        limits: "absolute",
        about: "The socket of Docker. Without it Docker is not asked.",
        example: "\"/run/docker.sock\"",
    },
    Key {
        name: "podman",
        form: "a path",
        default: None,
        limits: "absolute",
        about: "The socket of root's podman (podman.socket). Without it podman is not asked. The containers of other users, who \
                have a podman of their own, are reported and stay.",
        example: "\"/run/podman/podman.sock\"",
    },
];

const HOOK: &[Key] = &[
    Key {
        name: "path",
        form: "a path",
        default: None,
        limits: "absolute; only root and orphand's own user may be able to write the file and the directories above it; always needed",
        about: "The program.",
        example: "\"/etc/orphand/hook\"",
    },
    Key {
        name: "user",
        form: "a user's name",
        default: None,
        limits: "another than orphand's own takes root, or CAP_SETUID and CAP_SETGID",
        about: "The user it runs as, with that user's primary group and no others, and without capabilities. Without it the user that the \
                variable ORPHAND_HOOK_USER names, else orphand's own.",
        example: "\"nobody\"",
    },
    Key {
        name: "events",
        form: "a list of event names, or [\"all\"]",
        default: Some(
            "[\"alert\", \"alert_resolved\", \"lost\", \"orphan_detected\", \"orphan_exited\", \"orphan_reaped\", \
             \"orphan_spared\", \"reap_failed\"]",
        ),
        limits: "",
        about: "The events that it runs for.",
        example: "[\"alert\", \"alert_resolved\"]",
    },
    Key {
        name: "timeout",
        form: "a duration",
        default: Some("\"10s\""),
        limits: "above zero, at most an hour",
        about: "The time limit of a run. After that it is killed, with everything that it started.",
        example: "\"30s\"",
    },
];

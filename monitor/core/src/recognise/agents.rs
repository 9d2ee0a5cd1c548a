//! The built-in agents, and which of their commands are agent work. `claude mcp add` ends at once and starts
//! no run; `claude mcp serve` is a server.

use super::{
    program::{Carrier, Program},
    servers,
    text::stem,
};

#[derive(Debug)]
pub(super) struct Agent {
    /// The name that is shown for it; also the name of the rule.
    pub(super) name: &'static str,
    /// Base names of its programs and scripts.
    pub(super) programs: &'static [&'static str],
    /// Its npm and Python packages. Those of one platform (`NAME-linux-x64`) belong to it, too.
    packages: &'static [&'static str],
    /// Base names that are the agent in its packages only: elsewhere, other programs have them.
    entries: &'static [&'static str],
    /// Its Python modules, by their first component.
    modules: &'static [&'static str],
    /// Options before a command that take a value.
    valued: &'static [&'static str],
    /// Leading arguments that make it an MCP server, in addition to those that make any program one.
    serves: &'static [&'static str],
    /// Leading arguments of management commands, in addition to [`MANAGES`].
    manages: &'static [&'static [&'static str]],
    /// The commands that are agent work; every other command is management. Empty: every command that is not
    /// listed as management is agent work.
    works: &'static [&'static str],
    /// Leading arguments with which it is a daemon: it is meant to outlive whoever started it.
    daemons: &'static [&'static [&'static str]],
    /// Leading arguments with which it is a daemon unless its standard input is a wire. With a wire it works for
    /// whoever holds the other end.
    detachable: &'static [&'static [&'static str]],
}

/// What a process of an agent's program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Agent,
    /// It is an MCP server.
    Serves,
    Manages,
}

/// First arguments of management commands of all agents.
#[rustfmt::skip]
const MANAGES: &[&str] = &[
    "--help", "--version", "-V", "-h", "-v", "auth", "completion", "completions", "config", "doctor", "extensions", "help",
    "install", "login", "logout", "mcp", "plugin", "plugins", "setup-token", "uninstall", "update", "upgrade", "version",
];

#[rustfmt::skip]
const CODEX_VALUED: &[&str] = &[
    "-c", "--config", "-p", "--profile", "-m", "--model", "-C", "--cd", "-s", "--sandbox", "-a", "--ask-for-approval",
    "--enable", "--disable", "--local-provider", "--add-dir",
];
/// Subcommands of `openclaw gateway` and `hermes gateway` that do not run the gateway.
#[rustfmt::skip]
const GATEWAY: &[&[&str]] = &[
    &["gateway", "call"], &["gateway", "discover"], &["gateway", "health"], &["gateway", "install"], &["gateway", "list"],
    &["gateway", "probe"], &["gateway", "restart"], &["gateway", "setup"], &["gateway", "start"], &["gateway", "status"],
    &["gateway", "stop"], &["gateway", "uninstall"], &["gateway", "usage-cost"],
];

const fn agent(
    name: &'static str,
    programs: &'static [&'static str],
    packages: &'static [&'static str],
) -> Agent {
    Agent {
        name,
        programs,
        packages,
        entries: &[],
        modules: &[],
        valued: &[],
        serves: &[],
        manages: &[],
        works: &[],
        daemons: &[],
        detachable: &[],
    }
}

/// The built-in agents. Everyday words (`agent`, `q`, `pi`) are left out, because other programs have these
/// names. An agent without a rule is still found by the servers that it starts.
#[rustfmt::skip]
pub(super) const AGENTS: &[Agent] = &[
    Agent {
        serves: &["--claude-in-chrome-mcp", "--computer-use-mcp"],
        manages: &[&["--chrome-native-host"], &["migrate-installer"]],
        daemons: &[&["daemon", "run"], &["--bg-pty-host"], &["--bg-spare"]], // the supervisor and its hosts
        ..agent(
            "claude",
            &["claude", "claude-code", "claude-code-acp", "claude-agent-acp"],
            &[
                "@anthropic-ai/claude-code", "@anthropic-ai/claude-agent-sdk", "@zed-industries/claude-code-acp",
                "@zed-industries/claude-agent-acp", "@agentclientprotocol/claude-agent-acp",
            ],
        )
    },
    Agent {
        valued: CODEX_VALUED,
        serves: &["mcp-server"],
        manages: &[&["sandbox"], &["features"], &["debug"], &["apply"], &["execpolicy"], &["responses-api-proxy"], &["stdio-to-uds"]],
        daemons: &[&["app-server", "daemon"]], // its updater
        detachable: &[&["app-server"]],
        ..agent("codex", &["codex", "codex-acp", "codex-exec", "codex-tui"], &["@openai/codex", "@zed-industries/codex-acp"])
    },
    Agent { manages: &[&["skills"], &["hooks"]], ..agent("gemini", &["gemini", "gemini-cli"], &["@google/gemini-cli"]) },
    Agent {
        manages: &[&["models"], &["stats"], &["export"], &["import"], &["session", "list"]],
        detachable: &[&["serve"], &["web"]],
        ..agent("opencode", &["opencode"], &["opencode-ai", "opencode"])
    },
    Agent {
        entries: &["cli-entry"],
        manages: &[&["hooks"]],
        ..agent("qwen", &["qwen", "qwen-code"], &["@qwen-code/qwen-code"])
    },
    Agent {
        serves: &["mcp"], // `goose mcp developer`: one of its own servers
        manages: &[&["configure"], &["info"], &["session", "list"]],
        ..agent("goose", &["goose", "goosed"], &["@block/goose"])
    },
    Agent {
        modules: &["hermes_cli", "hermes_agent"],
        manages: GATEWAY,
        works: &["gateway", "chat", "acp", "cron", "dashboard", "serve", "run", "tui"],
        ..agent("hermes", &["hermes", "hermes_cli", "hermes-agent", "hermes-acp"], &["hermes-agent", "hermes_cli"])
    },
    Agent {
        manages: GATEWAY,
        works: &["gateway", "agent", "tui", "chat", "terminal", "acp", "node"],
        ..agent("openclaw", &["openclaw", "openclaw-gateway", "clawdbot", "clawdbot-gateway", "moltbot"], &["openclaw", "clawdbot", "moltbot"])
    },
    agent("cursor-agent", &["cursor-agent"], &[]),
    Agent { modules: &["aider"], ..agent("aider", &["aider", "aider-ce"], &["aider-chat", "aider", "aider-ce"]) },
    Agent { daemons: &[&["--cline-hub-daemon"]], ..agent("cline", &["cline", "cline-core", "cline-host"], &["cline"]) },
    agent("amp", &["amp"], &["@sourcegraph/amp", "@ampcode/cli"]),
    Agent { entries: &["run-crush"], ..agent("crush", &["crush"], &["@charmland/crush"]) },
    Agent { entries: &["npm-loader"], ..agent("copilot", &["copilot"], &["@github/copilot"]) },
    agent("droid", &["droid"], &["@factory/cli"]),
    Agent { entries: &["augment"], serves: &["--mcp"], ..agent("auggie", &["auggie"], &["@augmentcode/auggie"]) },
    agent("kiro", &["kiro-cli", "kiro-cli-chat"], &[]),
    agent("amazon-q", &["qchat"], &[]),
    agent("kimi", &["kimi", "kimi-cli"], &["kimi-cli"]),
    agent("iflow", &["iflow"], &["@iflow-ai/iflow-cli"]),
    agent("codebuff", &["codebuff"], &["codebuff"]),
    Agent { modules: &["openhands"], ..agent("openhands", &["openhands"], &["openhands", "openhands-ai"]) },
    Agent { entries: &["kilo"], ..agent("kilocode", &["kilocode"], &["@kilocode/cli"]) },
    agent("mcphost", &["mcphost"], &[]),
    agent("gptme", &["gptme", "gptme-server"], &["gptme"]),
];

pub(super) fn find(program: &Program<'_>) -> Option<&'static Agent> {
    if !matches!(program.carrier, Carrier::Itself | Carrier::Interpreter | Carrier::Runner) {
        return None;
    }
    if let Some(module) = program.module {
        let first = module.split('.').next().unwrap_or(module);
        return AGENTS.iter().find(|a| a.modules.contains(&first));
    }
    let script = program.carrier == Carrier::Interpreter;
    // anybody may have a script called claude.py
    let is_python = script
        && program.name != stem(program.name)
        && !matches!(program.name.rsplit_once('.'), Some((_, "js" | "mjs" | "cjs" | "ts")));
    let name = program.stem();
    AGENTS.iter().find(|a| {
        let named = a.programs.contains(&name) && !is_python;
        let Some(package) = program.package else {
            return named || (script && servers::is_generic(name) && a.is_version(program.path));
        };
        if !a.owns(package) {
            return named && !script;
        }
        match program.carrier {
            Carrier::Runner => true,
            Carrier::Interpreter => named || a.entries.contains(&name) || servers::is_generic(name),
            _ => named || a.entries.contains(&name),
        }
    })
}

impl Agent {
    /// Whether the package is one of the agent's, or one of them for some platform.
    fn owns(&self, package: &str) -> bool {
        let is_platform = |rest: &str| {
            rest.is_empty() || ["-linux", "-darwin", "-win32", "-windows"].iter().any(|p| rest.starts_with(p))
        };
        self.packages.iter().any(|own| package.strip_prefix(own).is_some_and(is_platform))
    }

    /// Whether a script lies where the agent keeps its versions: `cursor-agent/versions/2026.1.2/index.js`.
    fn is_version(&self, path: &str) -> bool {
        let mut folders = path.rsplit('/').skip(2);
        folders.next() == Some("versions") && folders.next().is_some_and(|name| self.programs.contains(&name))
    }

    /// What the program does, according to its arguments.
    pub(super) fn work(&self, program: &Program<'_>) -> Work {
        let args = skip_known_options(program.args, self.valued);
        let Some(first) = args.first() else { return Work::Agent };
        if self.serves.contains(first) || servers::serves(args) {
            return Work::Serves;
        }
        let manages = (MANAGES.contains(first) && self.name != "aider")
            || self.manages.iter().any(|m| args.starts_with(m));
        let works = self.works.is_empty() || first.starts_with('-') || self.works.contains(first);
        if manages || !works { Work::Manages } else { Work::Agent }
    }

    /// Whether the program is a daemon by design, according to its arguments. `wired`: its standard input is a wire.
    pub(super) fn is_daemon(&self, program: &Program<'_>, wired: bool) -> bool {
        let args = skip_known_options(program.args, self.valued);
        let begins = |list: &[&[&str]]| list.iter().any(|verb| args.starts_with(verb));
        begins(self.daemons) || (!wired && begins(self.detachable))
    }
}

/// Skips leading options whose number of values is known. Any other option may change the meaning of what
/// follows.
fn skip_known_options<'w>(args: &'w [&'w str], valued: &[&str]) -> &'w [&'w str] {
    let known = |word: &str| {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        valued.contains(&name) || matches!(name, "--debug" | "--verbose" | "--dangerously-skip-permissions")
    };
    let mut rest = args;
    while let [word, behind @ ..] = rest
        && known(word)
    {
        rest = if valued.contains(word) { behind.get(1..).unwrap_or_default() } else { behind };
    }
    rest
}

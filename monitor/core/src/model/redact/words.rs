//! The words that are known to be harmless, and those that announce a secret.

use crate::model::text::tokens;

/// Commands and values that say what a program does and to nobody who it is for. Lower case, sorted.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "access", "acp", "add", "all", "app-server", "attach", "auth", "auto", "basic", "beta", "boost", "bridge", "build", "call", "chat",
    "chrome", "chromium", "clone", "code", "commit", "compose", "config", "connect", "container", "create", "daemon", "debug",
    "default", "dev", "diff", "disabled", "dlx", "doctor", "enabled", "env", "error", "eval", "exec", "extensions", "false", "fetch",
    "file", "firefox", "full", "gateway", "get", "help", "host", "http", "http-only", "http-stream", "http_stream", "httpstream", "https", "info", "init",
    "inspect", "install", "json", "latest", "list", "local", "localhost", "log", "login", "logs", "lsp", "main", "master",
    "mcp", "mcp-proxy", "mcp-server", "msedge", "next", "none", "nohup", "null", "off", "on", "output", "plan", "plugin", "prod",
    "production", "proxy", "ps", "pull", "push", "read", "readonly", "remote", "remove", "repl", "restart", "resume", "run",
    "script", "serve", "server", "service", "sh", "show", "shttp", "sse", "stable", "start", "start-mcp-server", "status",
    "stdio", "stop", "stream-json", "streamable", "streamable-http", "streamable_http", "streamablehttp", "system", "task", "tcp", "test",
    "text", "tool", "trace", "true", "tunnel", "uds", "unix", "up", "update", "use", "utf-8", "verbose", "version", "warn",
    "warning", "watch", "webkit", "websocket", "worker", "write", "ws", "x", "yaml", "yes",
];

/// What divides the commands of a shell's script.
pub(super) const OPERATORS: &[&str] = &["!", "&&", "&", "(", ")", ";", "|", "||", "{", "}"];
/// What a shell does with files and streams.
const REDIRECTIONS: &[&str] = &["2>&1", "<", ">", ">>"];

/// Programs behind which another program is named. Sorted.
#[rustfmt::skip]
const CARRIERS: &[&str] = &[
    "bun", "bunx", "busybox", "chronic", "command", "corepack", "deno", "dnx", "do", "doas", "dotenv", "dotnet", "env", "exec",
    "export", "firejail", "flock", "ionice", "java", "mise", "nice", "node", "nodejs", "nohup", "npx", "perl", "php", "pipx",
    "pnpx", "proxychains", "python", "ruby", "setsid", "stdbuf", "sudo", "systemd-run", "taskset", "then", "time", "timeout",
    "ts-node", "tsx", "uvx", "watch", "xargs",
];
/// Commands of programs behind which another program is named. Sorted.
const STARTERS: &[&str] = &["attach", "call", "dlx", "execute", "run", "start", "tool", "x"];

/// Options whose value names a program, a package or a container.
pub(super) const NAMING: &[&str] =
    &["--from", "--image", "--module", "--name", "--package", "--spec", "--with", "-jar", "-m"];
/// Options before a program that take no value.
pub(super) const FLAGS: &[&str] = &["--init", "--rm", "--yes", "-i", "-it", "-t", "-y"];
/// Options with one dash and many letters.
#[rustfmt::skip]
const LONG_WITH_ONE_DASH: &[&str] = &[
    "-classpath", "-host", "-jar", "-mode", "-port", "-stdio", "-transport", "-verbose", "-version",
];

/// Parts of a name which say that a secret follows.
#[rustfmt::skip]
const SECRETS: &[&str] = &[
    "account", "apikey", "auth", "authorization", "bearer", "code", "connection", "cookie", "cookies", "cred", "credential",
    "credentials", "creds", "dsn", "h", "header", "headers", "jwt", "key", "keys", "login", "mnemonic", "nonce", "otp",
    "pass", "passphrase", "passwd", "password", "pat", "pin", "pw", "pwd", "salt", "sas", "secret", "secrets", "seed", "sid",
    "sig", "signature", "token", "totp", "webhook",
];
/// Ends of a name written as one word: `PGPASSWORD`, `oauthtoken`.
const SECRET_ENDS: &[&str] =
    &["auth", "credentials", "key", "pass", "passphrase", "passwd", "password", "pwd", "secret", "token"];

pub(super) fn is_known(word: &str) -> bool {
    let is_one = |word: &str| WORDS.contains(&word.to_ascii_lowercase().as_str());
    is_one(word)
        || word.split([':', '-']).all(is_one)
        || OPERATORS.contains(&word)
        || REDIRECTIONS.contains(&word)
}

/// Whether a program is named behind this one: `npx`, `/usr/bin/python3.12`.
pub(super) fn is_carrier(program: &str) -> bool {
    let base = program.rsplit('/').next().unwrap_or_default();
    // npm's own programs are scripts: `npx-cli.js`.
    let name = base.strip_suffix("-cli.js").unwrap_or(base);
    CARRIERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Whether this is the client of a container engine.
pub(super) fn is_engine(program: &str) -> bool {
    ["docker", "podman", "nerdctl", "finch"].contains(&program.rsplit('/').next().unwrap_or_default())
}

/// Whether this is a shell.
pub(super) fn is_shell(program: &str) -> bool {
    ["ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh"]
        .contains(&program.rsplit('/').next().unwrap_or_default())
}

/// Whether a program is named behind this word.
pub(super) fn is_starter(word: &str) -> bool {
    STARTERS.contains(&word) || is_carrier(word)
}

/// Whether an option with one dash is a name, and not a letter with its value: `-it`, `-jar`, `-Dx.y`.
pub(super) fn is_short_option(option: &str) -> bool {
    let letters = option.get(1..).unwrap_or_default();
    letters.len() <= 3 && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        || LONG_WITH_ONE_DASH.contains(&option)
}

/// Whether a shell's script or a command line follows this option.
pub(super) fn takes_script(option: &str, of_shell: bool) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    // Those of a shell may stand in any order: `-ec`, `-ce`.
    matches!(option, "--command" | "--stdio" | "--call")
        || letters.ends_with('c') && letters.len() <= 4 && letters.bytes().all(|b| b.is_ascii_lowercase())
        || of_shell
            && letters.contains('c')
            && letters.len() <= 4
            && letters.bytes().all(|b| b.is_ascii_lowercase())
}

/// Whether a name announces a secret: `--api-key`, `GITHUB_TOKEN`, `Authorization:`, `-H`.
pub(super) fn announces(name: &str) -> bool {
    let name = name.trim_start_matches('-');
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(tokens);
    let is_secret = |part: &str| SECRETS.contains(&part.to_ascii_lowercase().as_str());
    let whole = name.to_ascii_lowercase();
    name != "h"
        && !name.starts_with("no-")
        && !name.ends_with("-stdin")
        && (parts.any(is_secret) || SECRET_ENDS.iter().any(|end| whole.ends_with(end)))
}

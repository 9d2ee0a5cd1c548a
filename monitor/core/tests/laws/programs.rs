//! The programs of the model world: what their exec records say, taken from measured launch chains.

use orphand_core::{model::Image, recognise::Candidate};

/// A program as an exec record shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The base name of the file given to execve(2): the script's, not the interpreter's.
    pub comm: &'static str,
    /// The file that runs: the interpreter's for a script.
    pub exe: &'static str,
    pub argv: &'static [&'static str],
}

impl Program {
    pub fn image(&self) -> Image {
        Image {
            exe: self.exe.to_owned(),
            argv: self.argv.iter().map(|&a| a.to_owned()).collect(),
            argv_truncated: false,
        }
    }
}

const fn program(comm: &'static str, exe: &'static str, argv: &'static [&'static str]) -> Program {
    Program { comm, exe, argv }
}

pub const INIT: Program = program("systemd", "/usr/lib/systemd/systemd", &["/sbin/init"]);
pub const INETD: Program = program("xinetd", "/usr/sbin/xinetd", &["xinetd"]);
pub const BASH: Program = program("bash", "/usr/bin/bash", &["-bash"]);
pub const ORPHAND: Program = program("orphand", "/usr/bin/orphand", &["orphand", "run"]);
pub const TOOL: Program = program("bash", "/usr/bin/bash", &["/bin/bash", "-c", "make -j8 && ./run"]);
pub const CC: Program = program("cc1", "/usr/libexec/gcc/cc1", &["cc1", "main.c"]);
pub const VITE: Program = program("node", "/usr/bin/node", &["node", "/srv/app/node_modules/.bin/vite"]);
pub const CHROMIUM: Program =
    program("chrome", "/opt/chromium/chrome", &["/opt/chromium/chrome", "--headless", "--no-sandbox"]);
pub const GIT: Program = program("git", "/usr/bin/git", &["git", "status"]);
pub const CURL: Program = program("curl", "/usr/bin/curl", &["curl", "http://127.0.0.1:8080/"]);
pub const GDB: Program = program("gdb", "/usr/bin/gdb", &["gdb", "-p", "1"]);
pub const CAT: Program = program("cat", "/usr/bin/cat", &["cat", "requests"]);
pub const VIM: Program = program("vim", "/usr/bin/vim", &["/usr/bin/vim", "notes"]);
pub const TMUX: Program = program("tmux", "/usr/bin/tmux", &["tmux", "new-session", "-d"]);
pub const CONMON: Program =
    program("conmon", "/usr/bin/conmon", &["/usr/bin/conmon", "--api-version", "1", "-c", "abc"]);

pub const CLAUDE: Program = program("claude", "/home/u/.local/bin/claude", &["claude"]);
pub const CODEX_LAUNCHER: Program = program("node", "/usr/bin/node", &["node", "/usr/bin/codex"]);
pub const CODEX: Program = program(
    "codex",
    "/usr/lib/node_modules/@openai/codex/vendor/codex/codex",
    &["/usr/lib/node_modules/@openai/codex/vendor/codex/codex"],
);
pub const GEMINI: Program = program("node", "/usr/bin/node", &["node", "/usr/bin/gemini"]);
pub const HERMES: Program =
    program("python3", "/usr/bin/python3", &["python3", "-m", "hermes_cli", "gateway", "run"]);
pub const OPENCLAW: Program =
    program("node", "/usr/bin/node", &["node", "/usr/lib/node_modules/openclaw/openclaw.mjs", "gateway"]);
pub const PYTHON_HOST: Program = program("python3", "/usr/bin/python3", &["python3", "/srv/app/host.py"]);
pub const NODE_HOST: Program = program("node", "/usr/bin/node", &["node", "/srv/app/host.mjs"]);
/// A host that no candidate name covers: its exec is never reported.
pub const STRANGE_HOST: Program = program("ferret", "/opt/ferret/bin/ferret", &["ferret", "--work"]);

const NPX_ENV: Program = program(
    "npx",
    "/usr/bin/env",
    &["/usr/bin/env", "node", "/usr/bin/npx", "-y", "@modelcontextprotocol/server-everything"],
);
const NPX: Program = program(
    "node",
    "/usr/bin/node",
    &["node", "/usr/bin/npx", "-y", "@modelcontextprotocol/server-everything"],
);
const NPX_SH: Program = program("sh", "/usr/bin/dash", &["sh", "-c", "mcp-server-everything"]);
const NPX_BIN: Program = program(
    "node",
    "/usr/bin/node",
    &["node", "/home/u/.npm/_npx/1a2b/node_modules/.bin/mcp-server-everything"],
);
const UVX: Program = program("uvx", "/usr/bin/uvx", &["uvx", "mcp-server-time"]);
const UV: Program = program("uv", "/usr/bin/uv", &["uv", "tool", "uvx", "mcp-server-time"]);
const UVX_BIN: Program = program(
    "mcp-server-time",
    "/home/u/.cache/uv/archive-v0/h/bin/python",
    &["/home/u/.cache/uv/archive-v0/h/bin/python", "/home/u/.cache/uv/archive-v0/h/bin/mcp-server-time"],
);
const CONSOLE: Program = program(
    "mcp-server-git",
    "/srv/venv/bin/python3",
    &["/srv/venv/bin/python3", "/srv/venv/bin/mcp-server-git"],
);
const BINARY: Program =
    program("github-mcp-serv", "/usr/local/bin/github-mcp-server", &["github-mcp-server", "stdio"]);
const LOGIN_BASH: Program =
    program("bash", "/usr/bin/bash", &["/bin/bash", "-lc", "npx -y @modelcontextprotocol/server-everything"]);
const SHELL: Program =
    program("sh", "/usr/bin/dash", &["sh", "-c", "cd /srv/weather && node mcp-server-weather.js"]);
const SHELL_BIN: Program = program("node", "/usr/bin/node", &["node", "mcp-server-weather.js"]);
const DOCKER: Program =
    program("docker", "/usr/bin/docker", &["docker", "run", "-i", "--rm", "mcp/time", "stdio"]);

/// One step of a launch.
#[derive(Debug)]
pub enum Step {
    /// The process replaces its image.
    Exec(&'static Program),
    /// It forks a child that runs the program, and waits for it.
    Fork(&'static Program),
}

/// The ways to start a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// `npx -y P`: npm, sh, node.
    Npx,
    /// `uvx P`: uv, python.
    Uvx,
    /// A console script.
    Console,
    /// A plain binary.
    Binary,
    /// `bash -lc 'npx ..'`: bash execs itself away.
    LoginShell,
    /// `sh -c 'cd d && node f'`: sh stays.
    Shell,
    /// `docker run -i`.
    Docker,
}

impl Recipe {
    pub const ALL: [Self; 7] =
        [Self::Npx, Self::Uvx, Self::Console, Self::Binary, Self::LoginShell, Self::Shell, Self::Docker];

    pub fn steps(self) -> &'static [Step] {
        use Step::{Exec, Fork};
        match self {
            Self::Npx => &[Exec(&NPX_ENV), Exec(&NPX), Fork(&NPX_SH), Fork(&NPX_BIN)],
            Self::Uvx => &[Exec(&UVX), Exec(&UV), Fork(&UVX_BIN)],
            Self::Console => &[Exec(&CONSOLE)],
            Self::Binary => &[Exec(&BINARY)],
            Self::LoginShell => &[Exec(&LOGIN_BASH), Exec(&NPX), Fork(&NPX_SH), Fork(&NPX_BIN)],
            Self::Shell => &[Exec(&SHELL), Fork(&SHELL_BIN)],
            Self::Docker => &[Exec(&DOCKER)],
        }
    }
}

/// Names to report where the rules name none.
pub fn candidates() -> Vec<Candidate> {
    let always = ["node", "python3", "claude", "codex"].map(|comm| (comm, false));
    let on_wire = ["npx", "uvx", "uv", "sh", "bash", "docker"].map(|comm| (comm, true));
    let all = always.into_iter().chain(on_wire);
    all.map(|(comm, needs_wire)| Candidate { comm: comm.to_owned(), needs_wire }).collect()
}

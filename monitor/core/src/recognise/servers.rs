//! Recognition of MCP servers: by a name in program position, or by arguments that only a server has.

use super::{
    known_programs::{TOOLS, contains, is_steward},
    program::{Carrier, Program},
    project,
    text::{base, is_in_bin, is_one, stem, tokens, unscoped},
};

/// Servers whose names do not contain `mcp`: programs, commands and packages.
#[rustfmt::skip]
pub(super) const KNOWN: &[&str] = &[
    "@21st-dev/magic", "@bytebase/dbhub", "@wonderwhy-er/desktop-commander", "azmcp", "cclsp", "dbhub", "desktop-commander",
    "lsmcp", "mcpls", "memtomem-server", "serena", "serena-agent", "supergateway", "task-master-ai", "xcodebuildmcp",
];

/// The npm scope of the protocol's own packages.
const SCOPE: &str = "@modelcontextprotocol/";

/// Generic script names. The name of the package decides instead.
#[rustfmt::skip]
const GENERIC: &[&str] = &[
    "__init__", "__main__", "app", "bin", "bundle", "cli", "entry", "entrypoint", "index", "launch", "launcher", "main",
    "mod", "run", "server", "start", "start-server", "stdio",
];

pub(super) fn is_generic(stem: &str) -> bool {
    contains(GENERIC, stem)
}

/// The rule for a server that is recognised by its arguments.
pub(super) const ARGUMENTS: &str = "mcp-arguments";

pub(super) fn by_name(program: &Program<'_>) -> Option<&'static str> {
    if let Some(module) = program.module {
        // the SDK's own modules are a library and a command-line tool
        let is_sdk = module == "mcp" || module.starts_with("mcp.");
        return (!is_sdk && is_named(module)).then_some("module-mcp");
    }
    let name = program.stem();
    if program.package.is_some_and(is_tooling) || is_tool(program) {
        return None;
    }
    if contains(KNOWN, name) || program.package.is_some_and(|p| contains(KNOWN, p)) {
        return Some("known-mcp");
    }
    match program.carrier {
        Carrier::Wrapper => None,
        Carrier::Container => {
            let namespace = program.path.strip_suffix(program.name).unwrap_or_default();
            (base(namespace) == "mcp" || is_named(name)).then_some("image-mcp")
        }
        // the SDK's command-line tool is called `mcp`: its arguments decide
        Carrier::Itself => (name != "mcp" && is_named(name)).then_some("program-mcp"),
        Carrier::Shell => {
            ((name != program.name || is_in_bin(program.path)) && is_named(name)).then_some("script-mcp")
        }
        Carrier::Interpreter | Carrier::Runner => {
            let script = program.name != name || program.carrier == Carrier::Interpreter;
            let cli = name == "mcp" && program.name == name && program.package.is_none_or(|p| p == "mcp");
            if is_hook(name) {
                None
            } else if program.package.is_some_and(|p| p != "mcp" && (is_named(p) || p.starts_with(SCOPE))) {
                Some(package_rule(program))
            } else if !cli && is_named(name) {
                Some(if script { "script-mcp" } else { "program-mcp" })
            } else {
                project(program).map(|_| "project-mcp")
            }
        }
    }
}

/// Whether more than the word `mcp` says that a program known [by its name](by_name) is a server. `mcp-evals`,
/// `mcp-db-migrate` and `mcp-backup` have that word, too, and are jobs. Published servers are called `mcp-server-x` or
/// `x-mcp-server`, or are installed as a package `x-mcp`; or they are in the lists and scopes of this room.
pub(super) fn is_certain(program: &Program<'_>) -> bool {
    let name = program.stem();
    if let Some(module) = program.module {
        return is_called_server(module);
    }
    let folder = project(program);
    let names = [Some(name), program.package, folder];
    if names.iter().flatten().any(|name| contains(KNOWN, name) || is_called_server(name)) {
        return true;
    }
    if program.carrier == Carrier::Container {
        return base(program.path.strip_suffix(program.name).unwrap_or_default()) == "mcp";
    }
    // npm's link to a command of a package
    let command = program.path.contains("/node_modules/.bin/").then_some(name);
    let last = program.package.or(command).and_then(|installed| tokens(installed).last());
    program.package.is_some_and(|package| package.starts_with(SCOPE))
        || last.is_some_and(|last| last.eq_ignore_ascii_case("mcp"))
}

/// Whether `mcp` and `server` are neighbours in the name.
fn is_called_server(name: &str) -> bool {
    let (mcp, server) = (&["mcp"][..], &["server", "servers"][..]);
    let pairs = tokens(name).zip(tokens(name).skip(1));
    pairs
        .into_iter()
        .any(|(a, b)| (is_one(a, mcp) && is_one(b, server)) || (is_one(a, server) && is_one(b, mcp)))
}

/// The project of a script with a generic name, where that is a server's.
fn project<'w>(program: &Program<'w>) -> Option<&'w str> {
    let is_server = |folder: &&str| contains(KNOWN, folder) || project::is_server(folder, is_named);
    project::folder(program, is_generic).filter(is_server)
}

/// Whether the program is a tool, or a script of a tool's package. A user's own `find.py` is not.
fn is_tool(program: &Program<'_>) -> bool {
    contains(TOOLS, program.name) || program.package.is_some_and(|p| contains(TOOLS, p))
}

/// Scripts that package managers run during an installation.
fn is_hook(stem: &str) -> bool {
    matches!(stem, "postinstall" | "preinstall" | "install" | "prepare" | "uninstall" | "setup" | "build")
}

fn package_rule(program: &Program<'_>) -> &'static str {
    if program.path.contains("node_modules/") || program.package.is_some_and(|p| p.starts_with('@')) {
        "npm-mcp"
    } else if program.path.contains("-packages/") {
        "python-mcp"
    } else {
        "package-mcp"
    }
}

/// Packages of the protocol's authors that are not servers, whatever script of theirs runs.
fn is_tooling(package: &str) -> bool {
    let of = |list: &[&str]| tokens(unscoped(package)).any(|t| list.contains(&t));
    of(&["inspector"])
        || (package.starts_with(SCOPE) && of(&["sdk", "client", "create", "conformance", "ext"]))
}

/// Whether a name contains the word `mcp` and no word that makes it a tool for servers.
fn is_named(name: &str) -> bool {
    // a quick check: most names do not contain it
    if !name.as_bytes().windows(3).any(|w| w.eq_ignore_ascii_case(b"mcp")) {
        return false;
    }
    let (mut mcp, mut server, mut other) = (false, false, false);
    for (at, token) in tokens(name).enumerate() {
        if is_one(token, TESTS) || (at == 0 && is_one(token, VERBS)) {
            return false;
        }
        mcp |= is_one(token, &["mcp"]);
        server |= is_one(token, &["server", "servers"]);
        other |= mcp && is_one(token, CLIENTS);
    }
    mcp && (server || !other)
}

/// Words of which one makes a name that of a test.
const TESTS: &[&str] = &["test", "tests", "spec", "e2e", "inspector", "bench", "benchmark"];
/// Words that begin the names of tools for servers.
#[rustfmt::skip]
const VERBS: &[&str] = &["create", "install", "uninstall", "setup", "check", "lint", "update", "deploy", "build"];
/// Words behind `mcp` that name the other side of the protocol, or a tool. In `rest-client-mcp` the word says what is
/// served.
#[rustfmt::skip]
const CLIENTS: &[&str] = &[
    "sdk", "client", "clients", "host", "agent", "agents", "cli", "chat", "scan", "scanner", "inspect", "config", "use",
    "installer", "get", "types", "utils", "registry", "publisher", "validator",
];

/// Leading arguments that make any program a server, unless it is a tool.
#[rustfmt::skip]
const ANY: &[&[&str]] = &[
    &["mcp", "serve"], &["mcp", "server"], &["mcp", "start"], &["mcp", "run"], &["mcp", "stdio"],
    &["mcp-serve"], &["mcp-stdio"], &["serve-mcp"], &["start-mcp-server"], &["run-mcp-server"], &["mcp:start"],
    &["boost:mcp"], &["--mcp-stdio"], &["--mcp-server"], &["start", "--mcp-stdio"], &["serve", "--mcp-stdio"],
    &["run", "--mcp-stdio"], &["serve", "--mcp"],
];

/// Leading arguments that make these programs a server.
#[rustfmt::skip]
pub(super) const DOCUMENTED: &[(&str, &[&str])] = &[
    ("@angular/cli", &["mcp"]), ("@smithery/cli", &["run"]), ("basic-memory", &["mcp"]), ("bm", &["mcp"]),
    ("browser-use", &["--mcp"]), ("codanna", &["serve"]), ("codegraph", &["mcp"]), ("dab", &["start", "--mcp-stdio"]), ("dagger", &["mcp"]), ("dart", &["mcp-server"]),
    ("devbox", &["mcp"]), ("docker", &["mcp", "gateway", "run"]), ("fastmcp", &["run"]), ("firebase", &["mcp"]), ("firebase", &["experimental:mcp"]),
    ("firebase-tools", &["mcp"]), ("gbrain", &["serve"]), ("gitnexus", &["mcp"]), ("glab", &["mcp", "serve"]), ("gopls", &["mcp"]), ("mcp", &["run"]),
    ("mise", &["mcp"]), ("ng", &["mcp"]), ("playwright", &["mcp"]), ("proto", &["mcp"]), ("repomix", &["--mcp"]), ("semgrep", &["mcp"]),
    ("shadcn", &["mcp"]), ("smithery", &["run"]), ("toolbox", &["--stdio"]), ("toolbox", &["--prebuilt"]),
    ("vibe-kanban", &["--mcp"]),
];

/// Whether the arguments right after the program position are those of a server.
pub(super) fn by_arguments(program: &Program<'_>) -> bool {
    let (args, name) = (program.args, program.stem());
    let documented = |called: &str| DOCUMENTED.iter().any(|(p, lead)| *p == called && args.starts_with(lead));
    match program.carrier {
        Carrier::Shell | Carrier::Wrapper => documented(name),
        Carrier::Container => documented(name) || args.first() == Some(&"stdio"),
        Carrier::Itself | Carrier::Interpreter | Carrier::Runner => {
            if is_tool(program) || is_steward(program.name) || program.package.is_some_and(is_tooling) {
                return false;
            }
            serves(args)
                || documented(name)
                || program.package.is_some_and(documented)
                || is_mcp_command(program)
        }
    }
}

/// Whether these leading arguments make a program a server, provided it is neither a tool nor a host of other
/// programs.
pub(super) fn serves(args: &[&str]) -> bool {
    ANY.iter().any(|lead| args.starts_with(lead))
}

/// Whether this is `pnpm exec X mcp`, or the script that it runs. For a program that was not installed as a
/// command, `mcp` may be a search term.
fn is_mcp_command(program: &Program<'_>) -> bool {
    let installed = match program.carrier {
        Carrier::Runner => true,
        Carrier::Interpreter => program.package.is_some() || is_in_bin(program.path),
        _ => false,
    };
    let asks = |option: &str| matches!(option, "-h" | "--help" | "--version");
    installed
        && match program.args {
            ["mcp"] => true,
            ["mcp", option, ..] => option.starts_with('-') && !asks(option),
            _ => false,
        }
}

/// The name that is shown: package, module or program without path and version.
pub(super) fn display(program: &Program<'_>) -> String {
    if let Some(module) = program.module {
        return module.to_owned();
    }
    let stem = stem(program.name);
    match program.package {
        Some(package)
            if stem == unscoped(package) || is_generic(stem) || matches!(stem, "mcp" | "mcp-server") =>
        {
            // `@playwright/mcp`: the name without the scope says nothing.
            let name = unscoped(package);
            let says_nothing = matches!(name, "mcp" | "mcp-server" | "server" | "cli" | "core");
            (if says_nothing { package } else { name }).to_owned()
        }
        _ if matches!(program.carrier, Carrier::Itself | Carrier::Container) => program.name.to_owned(),
        _ => project(program).unwrap_or(stem).to_owned(),
    }
}

/// The name that is shown for an unrecognised program. As [`display`], but a user's own script keeps its
/// extension.
pub(super) fn title(program: &Program<'_>) -> String {
    if program.package.is_some() || program.module.is_some() {
        display(program)
    } else {
        program.name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(KNOWN.is_sorted() && GENERIC.is_sorted());
    }

    #[test]
    fn names() {
        let names = "mcp-server-git github-mcp-server chroma-mcp mcp-remote mcp_server_time \
            @upstash/context7-mcp @playwright/mcp MyMcpServer mcp-server rest-client-mcp \
            mcp-client-server foo.mcp run-mcp mcp-installer-server codex-mcp-server \
            gemini-mcp-tool";
        for name in names.split(' ') {
            assert!(is_named(name), "{name}");
        }
        let names = "mcp-client mcp-sdk mcp-inspector mcp-cli mcp-agent mcpserver fastmcp xmcp server \
            claude mcp.test test-mcp-server create-mcp-server mcp-server.spec mcphost ";
        for name in names.split(' ') {
            assert!(!is_named(name), "{name}");
        }
    }
}

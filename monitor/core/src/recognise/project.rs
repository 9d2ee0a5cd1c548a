//! The project that a script with a generic name belongs to: `weather-mcp` of `/home/me/weather-mcp/build/index.js`.
//! Used only by [`super::servers`].
//!
//! The name of a folder proves less than the name of a program: a user, a folder of projects or the documentation
//! may have any name. So the folder has to be the project itself, and its name that of a server without doubt. What
//! is left out here is found by its protocol.

use super::{
    known_programs::contains,
    program::{Carrier, Program},
    text::{base, is_one, stem, tokens},
};

/// Folders of a project that hold its code, or what was built from it.
const CODE: &[&str] = &["bin", "build", "dist", "lib", "src"];

/// Folders below those.
const INNER: &[&str] = &["cjs", "esm", "main"];

/// Stems that name a server if the script is in the project's own folder.
const DIRECT: &[&str] = &["__main__", "server", "start-server", "stdio"];

/// Words behind `mcp` that name a project about the protocol, or one of several programs.
#[rustfmt::skip]
const ABOUT: &[&str] = &[
    "admin", "app", "apps", "blog", "book", "bot", "bridge", "chatbot", "clients", "collection", "core", "course",
    "courses", "dashboard", "demo", "demos", "desktop", "dev", "doc", "docs", "documentation", "editor", "eval",
    "evals", "example", "examples", "experiment", "experiments", "explorer", "extension", "framework", "frontend",
    "gateway", "hub", "kit", "lab", "labs", "landing", "learn", "lib", "library", "llm", "manager", "market",
    "marketplace", "monitor", "mono", "monorepo", "notes", "orchestrator", "page", "pages", "platform", "playground",
    "plugin", "plugins", "project", "projects", "proxy", "quickstart", "repo", "research", "router", "sandbox",
    "sessions", "site", "spec", "stack", "starter", "store", "studio", "template", "templates", "tooling", "toolkit",
    "tools", "tutorial", "tutorials", "ui", "viewer", "web", "website", "workshop", "workspace", "workspaces",
];

/// Folders that hold the homes of users: what is right below is the name of a user.
const HOMES: &[&str] = &["Users", "home", "homes", "users"];

/// The folder of the project, where the script has a generic name and its path names that folder.
pub(super) fn folder<'w>(program: &Program<'w>, is_generic: fn(&str) -> bool) -> Option<&'w str> {
    let is_script = matches!(program.carrier, Carrier::Interpreter | Carrier::Runner);
    let stem = stem(program.name);
    let known = program.package.is_some() || program.module.is_some();
    if !is_script || known || !is_generic(stem) || !serves(stem, program.args) {
        return None;
    }
    let above = |path: &'w str| {
        let folder = path.strip_suffix(base(path))?.trim_end_matches('/');
        (!folder.is_empty()).then_some(folder)
    };
    let mut path = above(program.path)?;
    let mut is_direct = true;
    loop {
        let code = contains(CODE, base(path));
        let inner = contains(INNER, base(path)) && above(path).is_some_and(|p| contains(CODE, base(p)));
        if !code && !inner {
            break;
        }
        is_direct = false;
        path = above(path)?;
    }
    let is_user = above(path).is_some_and(|p| contains(HOMES, base(p)));
    (!is_user && (!is_direct || contains(DIRECT, stem))).then(|| base(path))
}

/// Whether the name of a project's folder is that of one server. `is_named` tells whether a program of this name is
/// a server.
pub(super) fn is_server(folder: &str, is_named: fn(&str) -> bool) -> bool {
    let (mut words, mut mcp, mut about, mut last) = (0_usize, false, false, "");
    for token in tokens(folder) {
        words += 1;
        about |= mcp && is_one(token, ABOUT);
        mcp |= is_one(token, &["mcp"]);
        last = token;
    }
    // `mcp` alone is the folder of whatever has to do with the protocol
    words > 1 && is_named(folder) && (!about || is_one(last, &["server"]))
}

/// A command-line tool serves only if its arguments do not name another command.
fn serves(stem: &str, args: &[&str]) -> bool {
    !matches!(stem, "bin" | "cli")
        || args.first().is_none_or(|first| {
            matches!(*first, "mcp" | "run" | "serve" | "server" | "start" | "stdio")
                || (first.starts_with('-') && !matches!(*first, "-h" | "--help" | "-v" | "-V" | "--version"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!([CODE, INNER, DIRECT, ABOUT, HOMES].iter().all(|list| list.is_sorted()));
    }
}

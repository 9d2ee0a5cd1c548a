//! Names extracted from paths, package specifiers and words. String functions without allocation, used only
//! by [`super`].

use crate::model::Image;
pub(super) use crate::model::text::{base, tokens};

/// Whether a word of a name is one of these, however it is written.
pub(super) fn is_one(token: &str, of: &[&str]) -> bool {
    of.iter().any(|word| token.eq_ignore_ascii_case(word))
}

/// Removes what `/proc/PID/exe` appends if the file was replaced or deleted, `d_path()` in `fs/d_path.c`.
pub(super) fn without_deleted(exe: &str) -> &str {
    exe.strip_suffix(" (deleted)").unwrap_or(exe)
}

/// The name of the file that a process executes.
pub(super) fn exe_name(image: &Image) -> &str {
    base(without_deleted(&image.exe))
}

/// The name of a program from its path. Self-updating programs are stored as `NAME/versions/1.2.3`; the
/// version is not the name.
pub(super) fn program_name(path: &str) -> &str {
    let name = base(path);
    if name.starts_with(|c: char| c.is_ascii_digit())
        && let Some(folder) = path.strip_suffix(name).and_then(|p| p.strip_suffix("/versions/"))
        && !folder.is_empty()
    {
        return base(folder);
    }
    unwrapped(name)
}

/// The name that a program is called by. Nix and Guix wrap programs: `.NAME-wrapped` (with `_` behind it for each further time), or
/// `.NAME-real`, is what the wrapper runs. npm ships native programs as `NAME.exe`, on Linux too.
fn unwrapped(name: &str) -> &str {
    let hidden = name.strip_prefix('.').map(|rest| rest.trim_end_matches('_'));
    let real = hidden.and_then(|rest| rest.strip_suffix("-wrapped").or_else(|| rest.strip_suffix("-real")));
    let real = real.or_else(|| name.strip_suffix(".exe")).filter(|real| !real.is_empty());
    real.unwrap_or(name)
}

/// The names of what the wrappers of Nix and Guix run for this program, as [`program_name`] takes them.
pub(super) fn wrapped(name: &str) -> [String; 2] {
    ["wrapped", "real"].map(|what| format!(".{name}-{what}"))
}

#[rustfmt::skip]
const SCRIPT_EXTENSIONS: &[&str] = &[
    "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "py", "pyc", "pyz", "rb", "php", "pl", "sh", "bash", "jar",
    "dll", "lua", "exe",
];

/// A file name without the extension of a script; other extensions stay.
pub(super) fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && SCRIPT_EXTENSIONS.contains(&extension) => stem,
        _ => name,
    }
}

/// Whether a word looks like a script file rather than the name of a task or a command.
pub(super) fn is_script_file(word: &str) -> bool {
    stem(base(word)) != base(word)
}

/// The package that a file belongs to: the directory below the last `node_modules` (with its scope) or
/// `site-packages`. Other directories prove nothing, because projects may have any name.
pub(super) fn package_of_path(path: &str) -> Option<&str> {
    let is_store = |folder: &str| {
        let name = folder.rsplit('/').next();
        matches!(name, Some("node_modules" | "site-packages" | "dist-packages"))
    };
    let slashes = path.rmatch_indices('/').map(|(at, _)| at);
    let inside = slashes.filter_map(|at| path.split_at_checked(at)).find(|(folder, _)| is_store(folder))?.1;
    let inside = inside.get(1..)?;
    let (first, rest) = inside.split_once('/')?;
    if first.starts_with('.') {
        return None;
    }
    if first.starts_with('@') {
        let (second, _) = rest.split_once('/')?;
        return inside.get(..first.len() + 1 + second.len());
    }
    Some(first)
}

/// Whether the path is a command that a package manager installed: `bin/NAME`, `.bin/NAME`.
pub(super) fn is_in_bin(path: &str) -> bool {
    let folder = path.strip_suffix(base(path)).unwrap_or_default().trim_end_matches('/');
    matches!(base(folder), "bin" | ".bin")
}

pub(super) fn unscoped(package: &str) -> &str {
    match package.strip_prefix('@').and_then(|p| p.split_once('/')) {
        Some((_, name)) => name,
        None => package,
    }
}

/// The package of a specifier of npm, uv, Deno or a git host, without version, extras and URL.
pub(super) fn package_name(specifier: &str) -> &str {
    let s = specifier.trim();
    let s = s.strip_prefix("npm:").or_else(|| s.strip_prefix("jsr:")).unwrap_or(s);
    // `name @ git+https://..` of PEP 508
    let s = s.split(' ').next().unwrap_or(s);
    let is_url = s.contains("://") || s.starts_with("git@") || s.starts_with(['.', '/', '~']);
    let is_hosted = ["github:", "gitlab:", "bitbucket:", "gist:", "file:"].iter().any(|p| s.starts_with(p));
    // `owner/repository` is npm's short form of a GitHub address
    if is_url || is_hosted || (!s.starts_with('@') && s.contains('/')) {
        let s = s.split(['#', '?']).next().unwrap_or(s).trim_end_matches('/');
        let name = base(s.rsplit_once(':').map_or(s, |(_, after)| after));
        let name = name.split('@').next().unwrap_or(name);
        return [".git", ".tgz", ".tar.gz", ".whl", ".zip"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
    }
    let from = usize::from(s.starts_with('@'));
    let end = s
        .char_indices()
        .skip(from)
        .find(|(_, c)| matches!(c, '@' | '=' | '<' | '>' | '!' | '~' | '[' | ';' | '#'))
        .map_or(s.len(), |(at, _)| at);
    let name = s.get(..end).unwrap_or(s);
    // `npm:name/file`, `npm:@scope/name/file` of Deno
    match name.char_indices().filter(|(_, c)| *c == '/').nth(from) {
        Some((at, _)) => name.get(..at).unwrap_or(name),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_paths() {
        assert_eq!(base("/usr/bin/node"), "node");
        assert_eq!(base("/srv/app/"), "app");
        assert_eq!(base(""), "");
        assert_eq!(without_deleted("/opt/claude/versions/2.1.3 (deleted)"), "/opt/claude/versions/2.1.3");
        assert_eq!(program_name("/home/u/.local/share/claude/versions/2.1.3"), "claude");
        assert_eq!(program_name("/versions/2.1.3"), "2.1.3");
        assert_eq!(program_name("versions/7z"), "7z");
        for path in
            ["/x/bin/.gemini-wrapped", ".gemini-wrapped__", "/x/.gemini-real", "bin/gemini.exe", "gemini"]
        {
            assert_eq!(program_name(path), "gemini", "{path}");
        }
        for name in [".-wrapped", ".gemini", "gemini-wrapped", ".exe", "gemini-real"] {
            assert_eq!(program_name(name), name);
        }
        assert_eq!(stem("server.test.js"), "server.test");
        assert_eq!(stem("mcp-server-time"), "mcp-server-time");
        assert_eq!(stem(".js"), ".js");
        assert!(is_in_bin("/x/node_modules/.bin/foo") && is_in_bin("venv/bin/foo") && !is_in_bin("foo"));
    }

    #[test]
    fn packages_of_paths() {
        for (path, package) in [
            (
                "/x/node_modules/@modelcontextprotocol/server-everything/dist/index.js",
                "@modelcontextprotocol/server-everything",
            ),
            ("/x/node_modules/.pnpm/@a+b@1.0.0/node_modules/@a/b/dist/index.js", "@a/b"),
            ("node_modules/foo-mcp/cli.js", "foo-mcp"),
            ("/h/foo-mcp/node_modules/vite/bin/vite.js", "vite"),
            ("/v/lib/python3.12/site-packages/mcp_server_time/__main__.py", "mcp_server_time"),
        ] {
            assert_eq!(package_of_path(path), Some(package), "{path}");
        }
        for path in [
            "/x/node_modules/.bin/foo-mcp",
            "/v/site-packages/foo_mcp.py",
            "/h/foo-mcp/index.js",
            "/h/my_node_modules/foo/x.js",
        ] {
            assert_eq!(package_of_path(path), None, "{path}");
        }
    }

    #[test]
    fn packages_of_specifiers() {
        for (specifier, package) in [
            ("@playwright/mcp@latest", "@playwright/mcp"),
            ("@playwright/mcp", "@playwright/mcp"),
            ("mcp-remote@0.1.29", "mcp-remote"),
            ("mcp[cli]", "mcp"),
            ("mcp[cli]>=1.2", "mcp"),
            ("mcp-server-git==2025.1", "mcp-server-git"),
            ("awslabs.core-mcp-server@latest", "awslabs.core-mcp-server"),
            ("git+https://github.com/oraios/serena", "serena"),
            ("git+https://github.com/a/foo-mcp.git@v1.0#subdirectory=x", "foo-mcp"),
            ("git+ssh://git@github.com/a/foo-mcp.git", "foo-mcp"),
            ("git@github.com:a/foo-mcp.git", "foo-mcp"),
            ("github:a/foo-mcp", "foo-mcp"),
            ("a/foo-mcp#main", "foo-mcp"),
            ("foo @ git+https://x/y", "foo"),
            ("./packages/foo-mcp", "foo-mcp"),
            ("npm:@a/foo-mcp@1/bin", "@a/foo-mcp"),
            ("npm:foo-mcp@^1", "foo-mcp"),
            ("jsr:@a/b@1/mod", "@a/b"),
            ("", ""),
            ("@", "@"),
        ] {
            assert_eq!(package_name(specifier), package, "{specifier}");
        }
    }

    #[test]
    fn words_of_names() {
        let of = |name| tokens(name).collect::<Vec<_>>();
        assert_eq!(of("@scope/foo-mcp_server.v2"), ["scope", "foo", "mcp", "server", "v2"]);
        assert_eq!(of("GitHubMcpServer"), ["Git", "Hub", "Mcp", "Server"]);
        assert_eq!(of("MCPServer"), ["MCP", "Server"]);
        assert_eq!(of("über-mcp"), ["über", "mcp"]);
        assert_eq!(of("xcodebuildmcp"), ["xcodebuildmcp"]);
        assert!(of("").is_empty());
    }
}

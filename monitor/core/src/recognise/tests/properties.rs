//! Properties that hold for every command line.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{image, told};
use crate::{
    model::Image,
    recognise::{Role, Rules},
};

/// Words with a meaning in some rule.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "mcp", "serve", "run", "mcp-server", "foo-mcp", "--mcp-stdio", "npx", "-y", "exec", "claude", "-m",
    "mcp_server", "-c", "--", "-", "-i", "stdio", "mcp/fetch", "docker", "node", "python3", "x.js",
    "mcp-server.js", "uv", "tool", "--from",
    "/x/node_modules/@modelcontextprotocol/server-everything/dist/index.js", "tmux", "sh", "env", "gateway",
    "@", "", " ", "-p", "--package=foo-mcp", "-lc", "npm exec foo-mcp", "--import", "bun", "deno", "x", "pnpm",
    "dlx", "git+https://a/b-mcp", "(deleted)", "/", "-jar", "versions/1.2", "/claude/versions/1.2", "@a/b@c/d",
    "node_modules/@a/", "conmon",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(WORDS).prop_map(str::to_owned), 1 => ".{0,12}", 1 => "[-@/._a-zäß:= ]{0,20}"]
}

fn role(argv: Vec<String>) -> Role {
    let exe = argv.first().cloned().unwrap_or_default();
    Rules::default().role(&Image { exe, argv, argv_truncated: false })
}

fn with(line: &str, more: &[String]) -> Role {
    let mut image = image(line);
    image.argv.extend(more.iter().cloned());
    Rules::default().role(&image)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_role_is_total(exe in word(), argv in vec(word(), 0..12), argv_truncated: bool) {
        let rules = Rules::default();
        let image = Image { exe, argv, argv_truncated };
        prop_assert_eq!(rules.role(&image), rules.role(&image));
    }

    /// The counterpart of the tables: no argument makes a program without commands a server or an agent, and
    /// no argument removes its role.
    #[test]
    fn arguments_do_not_change_what_a_program_is(
        line in select(&[
            "/usr/bin/vim", "grep", "tail -f", "git", "sleep", "/usr/bin/env", "timeout", "sudo", "make", "tmux", "SCREEN",
            "/usr/bin/conmon", "/sbin/init", "crond", "containerd-shim-runc-v2", "supervisord", "bash -c x", "sh -lc 'npx foo-mcp'",
            "bash x.sh", "node vitest", "node -e 1", "python3 -c 1", "python3 -m pytest", "npm install", "npm run",
            "pnpm add", "uv pip", "yarn add", "cargo", "mcp-server-git", "node /x/.bin/foo-mcp", "npx -y foo-mcp",
            "uvx mcp-server-git", "python3 -m mcp_server_git", "docker run -i mcp/fetch", "docker run -d x", "docker build",
            "node /x/node_modules/@modelcontextprotocol/server-everything/dist/index.js", "java -jar foo-mcp.jar",
            "npx @modelcontextprotocol/inspector", "node /x/bin/mcp-inspector", "uv run foo-mcp",
        ][..]),
        more in vec(word(), 1..6),
    ) {
        // a lone `mcp-server-git` may be a path; with further words it cannot be: both have the same role
        prop_assert_eq!(with(line, &more), with(line, &[]), "{} {:?}", line, more);
    }

    /// Only the words right after the program count, so an unrelated word hides the rest.
    #[test]
    fn arguments_further_behind_prove_nothing(
        line in select(&[
            "/opt/x/worker", "node app.js", "python3 agent.py", "python3 -m agent", "bun x.ts", "deno run -A x.ts", "npx cowsay",
            "uvx black", "uv run app.py", "claude", "codex", "gemini", "node /usr/bin/opencode", "pnpm exec cowsay", "go",
        ][..]),
        more in vec(word(), 0..6),
    ) {
        let mut args = vec!["innocent".to_owned()];
        args.extend(more);
        prop_assert_eq!(with(line, &args), with(line, &["innocent".to_owned()]));
    }

    #[test]
    fn a_version_is_no_part_of_a_name(package in "(@[a-z]{1,5}/)?[a-z]{1,6}(-mcp)?", version in "[0-9.^~a-z]{1,8}") {
        let of = |p: String| role(vec!["npx".into(), "-y".into(), p]);
        prop_assert_eq!(of(format!("{package}@{version}")), of(package));
    }

    #[test]
    fn a_folder_is_no_part_of_a_name(folder in "(/(mcp|mcp-server|claude|foo-mcp|\\.claude|bin|src|x y)){0,4}", name in select(&["serve.js", "worker.js", "tool.py", "app.test.py", "x.sh", "worker"][..])) {
        let interpreter = if name.ends_with("js") { "node" } else if name.ends_with("py") { "python3" } else { "bash" };
        let found = role(vec![interpreter.into(), format!("{folder}/{name}")]);
        prop_assert!(matches!(found, Role::Other { .. } | Role::Shell), "{}", told(&found));
    }

    /// What is above the project's own folder proves nothing.
    #[test]
    fn a_folder_above_the_project_is_no_part_of_a_name(folder in "(/(mcp|mcp-server|claude|foo-mcp|\\.claude|bin|src|x y)){0,4}", project in select(&["app", "mcp", "mcp-client", "foo-mcp-docs", "home/foo-mcp", "tests"][..]), code in "(/(src|dist|build|lib|bin)){0,2}", name in select(&["server.js", "index.js", "app.py", "main.py", "cli.js", "x.sh"][..])) {
        let interpreter = if name.ends_with("js") { "node" } else if name.ends_with("py") { "python3" } else { "bash" };
        let found = role(vec![interpreter.into(), format!("{folder}/{project}{code}/{name}")]);
        prop_assert!(matches!(found, Role::Other { .. } | Role::Shell), "{}", told(&found));
    }

    #[test]
    fn options_of_node_are_not_the_program(options in vec(select(&["--no-warnings", "--inspect=0", "-r x", "--import tsx", "--loader y", "--max-old-space-size=99", "--env-file .env", "-C dev"][..]), 0..5)) {
        let line = |script: &str| format!("node {} {script} --x", options.join(" "));
        prop_assert_eq!(told(&with(&line("/a/mcp-server.js"), &[])), "server mcp-server by script-mcp");
        prop_assert_eq!(told(&with(&line("/mcp/server.js"), &[])), "other server.js");
    }
}

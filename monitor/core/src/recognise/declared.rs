//! Whether the settings of an agent declare a program as an MCP server.
//!
//! Pure and total over any bytes: the text of one file of settings goes in, and the command line of a running
//! program. The program is a server only if an entry names its command and all of its arguments, in their order.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    first_message::harmless,
    interpreter::Interpreter,
    known_programs::{SHELLS, contains},
    text::base,
};

/// How a file of settings is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

/// The parts of a file that list servers. Everything else is passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    /// Claude Code and Desktop, Cursor, Windsurf, Gemini, Copilot, and many others.
    #[serde(rename = "mcpServers")]
    mcp_servers: Value,
    /// VS Code.
    servers: Value,
    /// Codex.
    #[serde(rename = "mcp_servers")]
    codex: Value,
    /// Opencode.
    mcp: Value,
    /// Zed.
    context_servers: Value,
    /// Claude Code: the servers of each project.
    projects: BTreeMap<String, Project>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Project {
    #[serde(rename = "mcpServers")]
    mcp_servers: Value,
}

/// The name under which this file of settings declares the program with the command line `argv`; `None` if it does not.
pub fn declared(file: &[u8], notation: Notation, argv: &[&str]) -> Option<String> {
    let settings: Settings = match notation {
        Notation::Json => serde_json::from_slice(file).ok()?,
        Notation::Toml => toml::from_slice(file).ok()?,
    };
    let lists =
        [&settings.mcp_servers, &settings.servers, &settings.codex, &settings.mcp, &settings.context_servers];
    let projects = settings.projects.values().map(|project| &project.mcp_servers);
    let mut entries = lists.into_iter().chain(projects).filter_map(Value::as_object).flatten();
    let (name, _) = entries.find(|(_, entry)| command_line(entry).is_some_and(|words| runs(argv, &words)))?;
    harmless(name)
}

/// The words of an entry's command line; `None` if it has none.
fn command_line(entry: &Value) -> Option<Vec<&str>> {
    let (command, args) = match entry.get("command")? {
        command @ Value::String(_) => (Some(command), entry.get("args")),
        list => (None, Some(list)),
    };
    let args = args.map_or(Some(&[][..]), |args| args.as_array().map(Vec::as_slice))?;
    command.into_iter().chain(args).map(Value::as_str).collect()
}

/// Whether a program with the command line `argv` is what `words` start. A script has its interpreter in front,
/// sometimes with one option, and a path that was searched for.
fn runs(argv: &[&str], words: &[&str]) -> bool {
    let Some((command, rest)) = words.split_first().filter(|(command, _)| !command.is_empty()) else {
        return false;
    };
    let Some(program) = argv.strip_suffix(rest) else { return false };
    let (path, interpreter) = match program {
        [path] => (path, None),
        [interpreter, path] | [interpreter, _, path] => (path, Some(*interpreter)),
        _ => return false,
    };
    let is_searched = || !command.contains('/') && base(path) == *command;
    let is_script = interpreter.is_none_or(|name| {
        path.contains('/') && (contains(SHELLS, base(name)) || Interpreter::named(base(name)).is_some())
    });
    is_script && (path == command || is_searched())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLAUDE: &str = r#"{"numStartups":7,"history":[{"display":"x"}],"mcpServers":{"notes":{"type":"stdio","command":"/opt/notes","args":["--db","n.db"],"env":{}}},
        "projects":{"/w":{"history":[1],"mcpServers":{"weather":{"command":"weather"}}},"/v":{}}}"#;
    const VSCODE: &str = r#"{"inputs":[],"servers":{"far":{"type":"http","url":"https://x"},"w":{"command":"python3","args":["server.py"]}}}"#;
    const OPENCODE: &str = r#"{"mcp":{"w":{"type":"local","command":["bun","x.ts"],"enabled":true}}}"#;
    const CODEX: &str =
        "model = \"x\"\n[mcp_servers.w]\ncommand = \"/opt/w\"\nargs = [\"a\"]\nstartup_timeout_sec = 10.0\n";

    fn told(file: &str, argv: &[&str]) -> Option<String> {
        let notation = if file.starts_with('{') { Notation::Json } else { Notation::Toml };
        declared(file.as_bytes(), notation, argv)
    }

    #[test]
    fn a_command_with_all_its_arguments_is_declared() {
        for (file, argv, name) in [
            (CLAUDE, &["/opt/notes", "--db", "n.db"][..], "notes"),
            (CLAUDE, &["python3", "/opt/notes", "--db", "n.db"], "notes"),
            (CLAUDE, &["weather"], "weather"),
            (CLAUDE, &["/usr/bin/node", "--x", "/home/u/.local/bin/weather"], "weather"),
            (VSCODE, &["python3", "server.py"], "w"),
            (VSCODE, &["/usr/bin/python3", "server.py"], "w"),
            (OPENCODE, &["bun", "x.ts"], "w"),
            (CODEX, &["/opt/w", "a"], "w"),
        ] {
            assert_eq!(told(file, argv).as_deref(), Some(name), "{argv:?}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for (file, argv) in [
            (CLAUDE, &["/opt/notes"][..]),
            (CLAUDE, &["/opt/notes", "n.db", "--db"]),
            (CLAUDE, &["/opt/notes", "--db", "n.db", "-v"]),
            (CLAUDE, &["/home/u/opt/notes", "--db", "n.db"]),
            (CLAUDE, &["notes", "--db", "n.db"]),
            (CLAUDE, &["sh", "-x", "-e", "/opt/notes", "--db", "n.db"]),
            (CLAUDE, &["weather", "weather.txt"]),
            (CLAUDE, &["grep", "-r", "weather"]),
            (CLAUDE, &["/usr/bin/wc", "/opt/notes", "--db", "n.db"]),
            (CLAUDE, &["python3", "weather"]),
            (VSCODE, &["python3"]),
            (VSCODE, &["python3", "-m", "server.py"]),
            (VSCODE, &[]),
            (CODEX, &["/opt/w"]),
            (
                "{\"mcpServers\":{\"a\":{\"command\":\"\"},\"b\":{\"command\":[]},\"c\":{\"command\":\"x\",\"args\":[1]},\"d\":7}}",
                &["x"],
            ),
            ("{\"mcpServers\":{\"a\":{\"command\":\"x\"}}", &["x"]),
            ("{\"mcpServers\":[{\"command\":\"x\"}]}", &["x"]),
            ("{\"other\":{\"a\":{\"command\":\"x\"}}}", &["x"]),
            ("{}", &["x"]),
            ("", &[]),
        ] {
            assert_eq!(told(file, argv), None, "{argv:?} in {file}");
        }
    }

    #[test]
    fn the_name_is_harmless() {
        let file = r#"{"mcpServers":{"a\u001b[2J\u202eb":{"command":"x"}}}"#;
        assert_eq!(told(file, &["x"]).as_deref(), Some("a[2Jb"));
        let long = format!(r#"{{"mcpServers":{{"{}":{{"command":"x"}}}}}}"#, "n".repeat(1000));
        assert_eq!(told(&long, &["x"]).map(|name| name.len()), Some(64));
        let deep = format!(r#"{{"mcpServers":{{"a":{{"command":"x"}},"b":{}"#, "[".repeat(30_000));
        assert_eq!(told(&deep, &["x"]), None);
    }

    proptest! {
        #[test]
        fn any_file_is_told(file in any::<Vec<u8>>(), text in "[\\[\\]{}\":,a-c =\n]{0,40}", argv in proptest::collection::vec(any::<String>(), 0..4)) {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            for file in [&file[..], text.as_bytes()] {
                prop_assert_eq!(declared(file, Notation::Json, &argv), None);
                prop_assert_eq!(declared(file, Notation::Toml, &argv), None);
            }
        }

        #[test]
        fn what_is_declared_is_found(words in proptest::collection::vec("/[a-z./ -]{1,6}", 1..5), before in 0usize..3) {
            let file = serde_json::json!({ "mcpServers": { "n": { "command": words[0], "args": words[1..] } } }).to_string();
            let argv: Vec<&str> = ["/usr/bin/node"; 2][..before].iter().copied().chain(words.iter().map(String::as_str)).collect();
            prop_assert_eq!(declared(file.as_bytes(), Notation::Json, &argv), Some("n".to_owned()));
        }
    }
}

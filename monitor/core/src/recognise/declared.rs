//! Whether the settings of an agent declare a program as an MCP server.
//!
//! Pure and total over any bytes: the text of one file of settings goes in, and the command line of a running
//! program. The program is a server only if an entry names its command and all of its arguments, in their order.
//! Invariant: of a file only the entries are kept, and not more of them than [`MOST`]. While it is read it is held in
//! memory as a whole, many times its size; [`Notation::longest`] bounds that, and a helper reads it.

use std::slice;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    first_message::harmless,
    known_programs::{SHELLS, contains},
    program::{Program, interpreter, words},
    servers,
    text::base,
};
use crate::model::Image;

/// The keys of lists of servers. `mcpServers`: Claude Code (which has one in each of its `projects`, too) and Desktop,
/// Cursor, Windsurf, Gemini, Copilot, and many others. `servers`: VS Code. `mcp_servers`: Codex. `mcp`: Opencode.
/// `context_servers`: Zed.
const LISTS: &[&str] = &["mcpServers", "servers", "mcp_servers", "mcp", "context_servers"];

/// The one among them that means nothing else.
const OF_ALL: &str = "mcpServers";

/// How many files or texts of one command line are looked at.
const WORDS: usize = 8;

/// The most bytes of entries of one file that are kept.
const MOST: usize = 64 * 1024;

/// How a file of settings is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Notation {
    Json,
    Toml,
    /// JSON that is named, or written out, on a command line. It may be anybody's, so it is settings only by the key that nobody
    /// else has: a supervisor may list `servers`, too.
    Told,
}

impl Notation {
    /// The stack on which any file that is read can be parsed. In TOML each of 80 nested tables may have a key of 80
    /// parts, and each part is a table: 8 MiB are not enough for a file of 13 KB.
    pub const STACK: usize = 64 << 20;

    /// The most bytes of a file that is read. The largest one is Claude Code's, which has a history in it.
    pub const fn longest(self) -> u64 {
        match self {
            Self::Json | Self::Told => 4 << 20,
            Self::Toml => 256 << 10,
        }
    }
}

/// The servers that a file of settings declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    entries: Vec<Entry>,
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    words: Vec<String>,
}

impl Declarations {
    /// What this file declares: nothing, if it is not well-formed.
    pub fn of(file: &[u8], notation: Notation) -> Self {
        let read: Option<Value> = match notation {
            Notation::Json | Notation::Told => serde_json::from_slice(file).ok(),
            Notation::Toml => toml::from_slice(file).ok(),
        };
        let file = read.unwrap_or_default();
        let keys = if notation == Notation::Told { slice::from_ref(&OF_ALL) } else { LISTS };
        let projects = file.get("projects").and_then(Value::as_object).into_iter().flat_map(Map::values);
        let lists = projects.filter_map(|project| project.get("mcpServers"));
        let mut found = Self::default();
        for list in keys.iter().filter_map(|key| file.get(*key)).chain(lists).filter_map(Value::as_object) {
            for (name, entry) in list {
                found.add(name, entry);
            }
        }
        found
    }

    /// The name under which the program with the command line `argv` is declared; `None` if it is not.
    pub fn name_of(&self, argv: &[String]) -> Option<&str> {
        self.entries.iter().find(|entry| runs(argv, &entry.words)).map(|entry| entry.name.as_str())
    }

    fn add(&mut self, name: &str, entry: &Value) {
        let Some((name, words)) = harmless(name).zip(command_line(entry)) else { return };
        let texts = words.iter().map(|word| size_of::<String>() + word.len()).sum::<usize>();
        let bytes = size_of::<Entry>() + name.len() + texts;
        if self.bytes + bytes <= MOST {
            self.bytes += bytes;
            self.entries.push(Entry { name, words });
        }
    }
}

/// The words of an entry's command line: `command` and `args`, or `command` alone, if that is a list; `None` if it has none.
fn command_line(entry: &Value) -> Option<Vec<String>> {
    let words = |list: &Value| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let command = entry.get("command")?;
    let Some(program) = command.as_str() else { return words(command) };
    let args = entry.get("args").map_or_else(|| Some(Vec::new()), words)?;
    Some(std::iter::once(program.to_owned()).chain(args).collect())
}

/// What a host with this command line may have been told to be its servers: the paths of files, and texts, of JSON
/// (`claude --mcp-config a.json '{"mcpServers":{}}'`).
pub fn told_settings(host: &[String]) -> [Vec<&str>; 2] {
    let words = || host.iter().skip(1).map(|word| value(word));
    let files =
        words().filter(|word| word.rsplit_once('.').is_some_and(|(_, kind)| kind == "json")).take(WORDS);
    let texts = words().filter(|word| word.starts_with('{') && word.contains(OF_ALL)).take(WORDS);
    [files.collect(), texts.collect()]
}

/// What a word of a command line says, without the option that it may be given to (`--mcp-config=a.json`).
fn value(word: &str) -> &str {
    word.split_once('=').filter(|_| word.starts_with('-')).map_or(word, |(_, value)| value)
}

/// Whether a bridge with the command line `bridge` was told to start a program with the command line `argv`, itself or by a
/// shell: `supergateway --stdio 'python server.py'`. A bridge is what a rule knows as a server by its name.
pub fn is_bridged(bridge: &[String], argv: &[String]) -> bool {
    let exe = bridge.first().cloned().unwrap_or_default();
    let image = Image { exe, argv: bridge.to_vec(), argv_truncated: false };
    let found = words(&image);
    let program = Program::find(&found, &image).0;
    let by_shell = |command: &str| match argv {
        [shell, option, text] => contains(SHELLS, base(shell)) && option == "-c" && text == command,
        _ => false,
    };
    let is_it = |command: &str| {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        by_shell(command) || runs(argv, &words)
    };
    let option = |pair: &[&str]| matches!(pair, ["--stdio", command] if is_it(command));
    let one_word = |word: &&str| word.strip_prefix("--stdio=").is_some_and(is_it);
    servers::by_name(&program).is_some()
        && (program.args.windows(2).any(option) || program.args.iter().any(one_word))
}

/// Whether a program with the command line `argv` is what `words` start. A script has its interpreter in front,
/// sometimes with one option, and a path that was searched for.
fn runs(argv: &[String], words: &[String]) -> bool {
    let Some((command, rest)) = words.split_first().filter(|(command, _)| !command.is_empty()) else {
        return false;
    };
    let program = argv.len().checked_sub(rest.len()).and_then(|count| argv.split_at_checked(count));
    let Some((program, _)) = program.filter(|(_, args)| *args == rest) else { return false };
    let (path, carrier) = match program {
        [path] => (path, None),
        [carrier, path] | [carrier, _, path] => (path, Some(carrier)),
        _ => return false,
    };
    let is_searched = || !command.contains('/') && base(path) == command;
    let is_script = carrier.is_none_or(|name| {
        path.contains('/') && (contains(SHELLS, base(name)) || interpreter(base(name)).is_some())
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

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    fn declared(file: &[u8], notation: Notation, argv: &[&str]) -> Option<String> {
        Declarations::of(file, notation).name_of(&owned(argv)).map(str::to_owned)
    }

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
    fn a_bridge_names_what_it_starts() {
        const BRIDGE: &[&str] =
            &["node", "/x/.bin/supergateway", "--stdio", "python3 /w/server.py", "--port", "80"];
        const COMPOUND: &[&str] = &["supergateway", "--port", "80", "--stdio=cd /w && node x.js"];
        for (bridge, argv, is_it) in [
            (BRIDGE, &["/usr/bin/python3", "/w/server.py"][..], true),
            (BRIDGE, &["/bin/sh", "-c", "python3 /w/server.py"], true),
            (COMPOUND, &["/bin/sh", "-c", "cd /w && node x.js"], true),
            (COMPOUND, &["node", "x.js"], false),
            (BRIDGE, &["/usr/bin/python3", "/w/server.py", "--port", "80"], false),
            (BRIDGE, &["/bin/sh", "-c", "python3"], false),
            (BRIDGE, &["80"], false),
            (BRIDGE, &[], false),
            (
                &["node", "/x/lsp-bridge", "--stdio", "python3 /w/server.py"],
                &["python3", "/w/server.py"],
                false,
            ),
            (
                &["grep", "supergateway", "--stdio", "python3 /w/server.py"],
                &["python3", "/w/server.py"],
                false,
            ),
            (&[], &["python3", "/w/server.py"], false),
        ] {
            assert_eq!(is_bridged(&owned(bridge), &owned(argv)), is_it, "{bridge:?} {argv:?}");
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
    fn what_a_host_is_told_is_a_file_or_a_text() {
        const TEXT: &str = r#"{"mcpServers":{"w":{"command":"x"}}}"#;
        let option = format!("--mcp-config={TEXT}");
        for (line, files, texts) in [
            (
                &["claude", "--mcp-config", "/w/a.json", "b.json", TEXT][..],
                &["/w/a.json", "b.json"][..],
                &[TEXT][..],
            ),
            (&["claude", "--mcp-config=c.json", &option], &["c.json"], &[TEXT]),
            (&["a.json", "-p", "x=y.json", "{\"servers\":{}}", "the mcpServers"], &["x=y.json"], &[]),
            (&[], &[], &[]),
        ] {
            assert_eq!(told_settings(&owned(line)), [files.to_vec(), texts.to_vec()], "{line:?}");
        }
        let many = vec!["a.json".to_owned(); 100];
        assert_eq!(told_settings(&many)[0].len(), WORDS);
    }

    /// `supervisor services.json`: its servers may be any.
    #[test]
    fn a_file_that_is_named_has_one_key_that_counts() {
        assert_eq!(declared(CLAUDE.as_bytes(), Notation::Told, &["weather"]).as_deref(), Some("weather"));
        assert_eq!(
            declared(CLAUDE.as_bytes(), Notation::Told, &["/opt/notes", "--db", "n.db"]).as_deref(),
            Some("notes")
        );
        for (file, argv) in [(VSCODE, &["python3", "server.py"]), (OPENCODE, &["bun", "x.ts"])] {
            assert_eq!(declared(file.as_bytes(), Notation::Told, argv), None);
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

    #[test]
    fn what_is_of_no_use_is_passed_over() {
        for odd in
            ["7", "[[1],{\"a\":[]}]", "null", "\"x\"", "{\"a\":-1.5}", "{\"command\":{\"b\":1},\"args\":[]}"]
        {
            let file = format!(
                r#"{{"other":{odd},"mcp":{odd},"servers":{{"z":{odd}}},"projects":{odd},"mcpServers":{{"y":{odd},"a":{{"env":{odd},"command":"x"}},"b":{{"args":{odd},"command":"x"}}}}}}"#
            );
            assert_eq!(told(&file, &["x"]).as_deref(), Some("a"), "{file}");
        }
    }

    #[test]
    fn what_is_kept_of_a_file_is_bounded() {
        let many: Vec<String> = (0..20_000).map(|n| format!(r#""n{n}":{{"command":"x{n}"}}"#)).collect();
        let file = format!(r#"{{"mcpServers":{{{}}}}}"#, many.join(","));
        let kept = Declarations::of(file.as_bytes(), Notation::Json);
        assert!(kept.bytes <= MOST && kept.entries.len() > 100, "{}", kept.entries.len());
        let name_of = |word: &str| kept.name_of(&owned(&[word]));
        assert_eq!((name_of("x0"), name_of("x19999")), (Some("n0"), None));
        let words = vec!["\"w\""; 200_000].join(",");
        for entry in [
            format!(r#"{{"command":[{words}]}}"#),
            format!(r#"{{"command":"x","args":[{words}]}}"#),
            format!(r#"{{"command":"{}"}}"#, "w".repeat(200_000)),
        ] {
            let file = format!(r#"{{"mcpServers":{{"a":{entry},"b":{{"command":"y"}}}}}}"#);
            let kept = Declarations::of(file.as_bytes(), Notation::Json);
            assert_eq!(kept.entries.len(), 1);
            assert_eq!(kept.name_of(&owned(&["y"])), Some("b"));
        }
        let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Declarations::of(deep.as_bytes(), Notation::Toml), Declarations::default());
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

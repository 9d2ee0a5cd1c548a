//! Messages of MCP, and of everything else that begins alike.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn mcp(client: &str) -> FirstMessage {
    FirstMessage::Mcp { client: (!client.is_empty()).then(|| client.to_owned()) }
}

fn told(line: &str) -> FirstMessage {
    first_message(line.as_bytes(), true)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"claude-code","version":"2.1"}}}"#;
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"discover-1","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Lines of MCP, with the name of the client.
const LINES: &[(&str, &str)] = &[
    (INITIALIZE, "claude-code"),
    (DISCOVER, "x"),
    // Keys in another order, blanks, escapes that mean the same.
    (
        r#" { "params" : { "clientInfo" : { "version" : "1", "name" : "a b" } , "capabilities" : { } , "protocolVersion" : "2024-11-05" } , "method" : "\u0069nitialize" , "id" : "a" , "json\u0072pc" : "2.0" } "#,
        "a b",
    ),
    (
        r#"{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}},"jsonrpc":"2.0","id":-1.5e3}"#,
        "",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"DRAFT-2026-v1","clientInfo":{}}}"#,
        "",
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, ""),
    (
        r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        "",
    ),
    // The server has read what came before.
    (r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#, ""),
    (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, ""),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":[1,2.5,-0,true,null]}}}"#,
        "",
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"resources/templates/list","params":{}}"#, ""),
    (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"prompts/list"}]"#, ""),
];

/// Whole first messages, and beginnings, of programs that are no MCP servers.
const OTHERS: &[&str] = &[
    // The Agent Client Protocol, of today and of before; codex's app server.
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}},"clientInfo":{"name":"zed"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"0.0.9","clientInfo":{"name":"zed"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
    r#"{"method":"initialize","id":0,"params":{"clientInfo":{"name":"codex_vscode","title":"x","version":"0.1.0"}}}"#,
    r#"{"method":"initialize","id":0,"params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x"}}}"#,
    // A language server's message without its header; a later message of it.
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":1,"rootUri":null,"capabilities":{},"clientInfo":{"name":"Neovim","version":"0.10"}}}"#,
    r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#,
    // A TypeScript server, a debug adapter without a header, Claude Code's own stream.
    r#"{"seq":0,"type":"request","command":"configure","arguments":{"hostInfo":"vscode"}}"#,
    r#"{"seq":1,"type":"request","command":"initialize","arguments":{"clientID":"vscode","adapterID":"x"}}"#,
    r#"{"type":"user","message":{"role":"user","content":"call server/discover with jsonrpc 2.0"}}"#,
    r#"{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}"#,
    // Nodes of currencies, which take batches and parameters by position.
    r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#,
    r#"{"jsonrpc":"1.0","id":"curl","method":"getblockcount","params":[]}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"eth_syncing"}]"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":["2025-06-18"]}"#,
    // Input of jq: records that may quote a message, and an array of parts.
    r#"{"name":"x","value":1}"#,
    r#"{"log":"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}}"}"#,
    r#"{"message":{"jsonrpc":"2.0","id":1,"method":"server/discover"}}"#,
    r#"["2.0",1,"server/discover",{}]"#,
    "[]",
    "[[]]",
    "{}",
    "{",
    "[",
    // An answer, and requests that are not whole.
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}}"#,
    r#"{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"server/discover"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"tool":"x"}}"#,
    r#"{"jsonrpc":2.0,"id":1,"method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"Tools/List"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"} {"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list",}"#,
    "{'jsonrpc':'2.0','id':1,'method':'tools/list'}",
    // Two values for one name: the last one counts, as everywhere.
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"eth_syncing"}"#,
    // git (protocol v2 and hooks), ssh, HTTP, shells, SQL, plain text, numbers.
    "003agit-upload-pack /project.git\0host=example.org\0",
    "0000000000000000000000000000000000000000 6f1d refs/heads/main",
    "SSH-2.0-OpenSSH_9.2p1 Debian-2",
    "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{}",
    "echo hello",
    "select 1;",
    "contents of a file",
    "Content of a file",
    "content-lengths: 7",
    "\"jsonrpc\"",
    "42",
    "null",
    "\u{0}",
    "\u{7f}ELF",
    "method: initialize",
];

#[test]
fn messages_of_mcp_are_told() {
    for (line, client) in LINES {
        for (before, after) in [
            ("", "\n"),
            ("", "\r\n"),
            ("\n \r\n", "\n"),
            ("\u{feff}", "\n"),
            ("", "\n{\"jsonrpc\""),
            ("", "\nx\n"),
        ] {
            assert_eq!(told(&format!("{before}{line}{after}")), mcp(client), "{line}");
        }
        assert_eq!(told(line), FirstMessage::Nothing, "its line has no end yet: {line}");
        assert_eq!(first_message(line.as_bytes(), false), FirstMessage::Other, "it is too long: {line}");
    }
}

#[test]
fn messages_of_others_are_not() {
    let is_other = |said| matches!(said, FirstMessage::Other | FirstMessage::Hook);
    for line in OTHERS {
        assert!(is_other(told(&format!("{line}\n"))), "{line}");
        assert_ne!(told(line), mcp(""), "{line}");
        assert!(is_other(told(&format!("{line}\n{INITIALIZE}\n"))), "only the first counts: {line}");
    }
    for bytes in [&b"\xff\xfe{\0"[..], b"\x16\x03\x01\x02\0\x01\0", b"{\"a\":\"\xff\"}\n", b"\xef\xbb{}\n"] {
        assert_eq!(first_message(bytes, true), FirstMessage::Other, "{bytes:?}");
    }
}

#[test]
fn a_header_is_that_of_a_language_server() {
    for text in [
        "Content-Length: 119\r\n\r\n{",
        "content-length:2",
        "CONTENT-TYPE: application/vscode-jsonrpc; charset=utf-8\r\n",
        "\r\nContent-Length: 2\r\n",
    ] {
        assert_eq!(told(text), FirstMessage::Other, "{text}");
    }
    for text in ["", "\n"] {
        assert_eq!(told(text), FirstMessage::Nothing, "{text}");
        assert_eq!(first_message(text.as_bytes(), false), FirstMessage::Other, "{text}");
    }
}

#[test]
fn a_beginning_may_become_a_message() {
    for text in
        ["\u{feff}", "{", "[", " [ {\"a\":-", "{\"a\":1.", "{\"a\":1e+", "{\"a\":tr", "{\"a\":\"\\u00", "{}"]
    {
        assert_eq!(told(text), FirstMessage::Nothing, "{text}");
    }
    for text in ["{x", "{\"a\"}", "{]", "{} {", "{\"a\":1-", "{\"a\":+", "{1", "[1 2"] {
        assert_ne!(told(&format!("{text} ")), FirstMessage::Nothing, "{text}");
    }
    assert_eq!(first_message(b"\xef", true), FirstMessage::Nothing);
    assert_eq!(first_message(b"\xef\xbb", true), FirstMessage::Nothing);
}

#[test]
fn versions_are_dates() {
    for version in ["2024-11-05", "2025-03-26", "2026-07-28", "2099-12-31", "DRAFT-2025-v2", "DRAFT-2026-v10"]
    {
        assert!(is_version(version), "{version}");
    }
    for version in [
        "",
        "1",
        "1.0",
        "0.0.9",
        "3.17",
        "2025",
        "2025-06",
        "2025-6-18",
        "2025-13-01",
        "2025-00-10",
        "2025-01-32",
        "2025-06-18-1",
        "2025-06-18 ",
        "1999-01-01",
        "2023-01-01",
        "draft",
        "DRAFT-2026",
        "DRAFT-2026-2",
        "DRAFT-2026-v",
        "v2025-06-18",
        "+025-06-18",
        "2025-+6-18",
        "２０２５-06-18",
    ] {
        assert!(!is_version(version), "{version}");
    }
}

#[test]
fn a_name_is_bounded_and_harmless() {
    let named = |name: &str| {
        let name = serde_json::to_string(name).unwrap();
        let line = INITIALIZE.replace(r#""claude-code""#, &name);
        match told(&(line + "\n")) {
            FirstMessage::Mcp { client } => client,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(named("Zed\u{1b}[2J\u{202e}\n x").as_deref(), Some("Zed[2J x"));
    assert_eq!(named(&"é".repeat(1000)).as_deref(), Some(&*"é".repeat(64)));
    assert_eq!(named(" \u{200b}\t "), None);
    assert_eq!(
        told(&INITIALIZE.replace(r#""claude-code""#, "[7]\n").replace('\n', " ").replace("}}}", "}}}\n")),
        mcp("")
    );
}

#[test]
fn nesting_and_length_are_no_danger() {
    for open in ["[", "{\"a\":", "{\"params\":["] {
        let deep = open.repeat(30_000);
        assert_eq!(told(&deep), FirstMessage::Nothing);
        assert_eq!(told(&format!("{deep}\n")), FirstMessage::Other);
    }
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let line = INITIALIZE.replace(r#""roots":{}"#, &format!(r#""roots":{deep}"#));
    assert_eq!(told(&(line + "\n")), FirstMessage::Other);
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_told(bytes in vec(any::<u8>(), 0..300), all in any::<bool>()) {
        let _ = first_message(&bytes, all);
    }

    #[test]
    fn any_text_of_messages_is_told(
        parts in vec(select(&["{", "}", "[", "]", ",", ":", "\"", "\\", "-1.", "e", "tr", "\n", "\r", " ", "\u{feff}",
            "jsonrpc", "2.0", "method", "initialize", "params", "Content-Length:", "é"][..]), 0..30),
        all in any::<bool>(),
    ) {
        let _ = told(&parts.concat());
        let _ = first_message(parts.concat().as_bytes(), all);
    }

    /// The beginning of a message never ends the looks, however the message was cut.
    #[test]
    fn a_beginning_of_mcp_is_nothing_yet(
        (line, _) in select(LINES), more in json(), id in any::<f64>().prop_filter("a number", |id| id.is_finite()),
        at in any::<prop::sample::Index>(),
    ) {
        let line = line.replacen("\"id\":1,", &format!("\"id\":{id:e},"), 1);
        let line = match line.trim().strip_prefix('{') {
            Some(rest) => format!("{{\"x\":{more},{rest}"),
            None => line,
        };
        prop_assume!(matches!(told(&format!("{line}\n")), FirstMessage::Mcp { .. }));
        let cut = at.index(line.len() + 1);
        prop_assert_eq!(first_message(&line.as_bytes()[..cut], true), FirstMessage::Nothing, "{}", line);
    }

    /// Whatever is not said in the words of the protocol is no message of it.
    #[test]
    fn any_other_json_is_not_mcp(value in json(), params in json(), method in "[a-z]{1,8}(/[a-z]{1,8})?") {
        let other = [FirstMessage::Other, FirstMessage::Hook];
        let said = told(&format!("{value}\n"));
        prop_assert!(other.contains(&said), "{:?}", said);
        prop_assume!(!REQUESTS.contains(&method.as_str()));
        let message = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        prop_assert_eq!(told(&format!("{message}\n")), FirstMessage::Other);
    }

    #[test]
    fn a_name_is_never_hostile(name in any::<String>()) {
        let name = serde_json::to_string(&name).unwrap();
        let line = INITIALIZE.replace(r#""claude-code""#, &name) + "\n";
        let FirstMessage::Mcp { client } = told(&line) else { panic!("{line}") };
        let client = client.unwrap_or_default();
        prop_assert!(client.chars().count() <= 64 && !client.contains(is_hostile));
    }
}

/// A hook reads one object, which may have no end of line.
#[test]
fn what_an_agent_tells_a_hook_is_no_message_of_the_protocol() {
    let told_to_a_hook = r#"{"session_id":"a","cwd":"/","hook_event_name":"PostToolUse","tool_name":"Bash"}"#;
    assert_eq!(told(told_to_a_hook), FirstMessage::Hook);
    assert_eq!(told(&format!("{told_to_a_hook}\n")), FirstMessage::Hook);
    assert_eq!(first_message(told_to_a_hook.as_bytes(), false), FirstMessage::Other);
    for other in [r#"{"timestamp":1,"cwd":"/","reason":"complete"}"#, r#"{"hookName":"TaskComplete"}"#] {
        assert_eq!(told(other), FirstMessage::Hook);
    }
    for no_hook in ["{}", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, r#"{"method":"start"}"#] {
        assert_ne!(told(no_hook), FirstMessage::Hook, "{no_hook}");
    }
    let (beginning, _) = told_to_a_hook.split_at(60);
    assert_eq!(told(beginning), FirstMessage::Nothing);
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","hook_event_name":"x"}
"#;
    assert_eq!(told(request), mcp(""));
}

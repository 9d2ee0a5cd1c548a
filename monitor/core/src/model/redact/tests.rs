//! What is a secret and what is not, and the properties of redaction.

use proptest::prelude::*;

/// Redacts arguments that the kernel did not cut.
fn argv(arguments: Vec<String>) -> Vec<String> {
    super::argv(arguments, false)
}

mod shapes;

/// Redacts arguments given as a list.
fn redact(arguments: &[&str]) -> Vec<String> {
    argv(arguments.iter().map(ToString::to_string).collect())
}

#[track_caller]
fn becomes(arguments: &[&str], expected: &[&str]) {
    assert_eq!(redact(arguments), expected, "from {arguments:?}");
}

#[track_caller]
fn stays(arguments: &[&str]) {
    becomes(arguments, arguments);
}

#[test]
fn options_with_a_secret() {
    becomes(&["node", "server.js", "--token", "abc"], &["node", "server.js", "--token", "***"]);
    becomes(&["node", "server.js", "--api-key=abc def"], &["node", "server.js", "--api-key=***"]);
    becomes(&["x", "--password", "-hunter2-"], &["x", "--password", "***"]);
    becomes(&["x", "--apiKey", "abc", "--port", "1"], &["x", "--apiKey", "***", "--port", "1"]);
    becomes(&["x", "--oauth2Bearer", "abc"], &["x", "--oauth2Bearer", "***"]);
    becomes(&["x", "-token", "abc"], &["x", "-token", "***"]);
    becomes(
        &["x", "--client-secret", "a", "--db_password", "b"],
        &["x", "--client-secret", "***", "--db_password", "***"],
    );
    becomes(
        &["npx", "@smithery/cli", "run", "s", "--key", "abc"],
        &["npx", "@smithery/cli", "run", "s", "--key", "***"],
    );
}

#[test]
fn assignments_with_a_secret() {
    becomes(&["env", "GITHUB_TOKEN=abc", "node", "s.js"], &["env", "GITHUB_TOKEN=***", "node", "s.js"]);
    becomes(&["env", "DB_PASSWORD=two words", "node"], &["env", "DB_PASSWORD=***", "node"]);
    becomes(
        &["env", "MY_API_KEY=a", "MYAPIKEY=b", "X_CREDENTIALS=c"],
        &["env", "MY_API_KEY=***", "MYAPIKEY=***", "X_CREDENTIALS=***"],
    );
    becomes(
        &["env", "BASIC_AUTH=a", "OPENAI_KEY=b", "DB_PASSWD=c"],
        &["env", "BASIC_AUTH=***", "OPENAI_KEY=***", "DB_PASSWD=***"],
    );
    becomes(
        &["docker", "run", "-i", "--rm", "-e", "NOTION_TOKEN=abc", "-e", "LANG=C", "mcp/notion"],
        &["docker", "run", "-i", "--rm", "-e", "NOTION_TOKEN=***", "-e", "LANG=C", "mcp/notion"],
    );
    becomes(&["docker", "run", "--env=TOKEN=abc", "img"], &["docker", "run", "--env=TOKEN=***", "img"]);
}

#[test]
fn urls() {
    becomes(
        &["mcp-server-postgres", "postgres://u:p@h/db"],
        &["mcp-server-postgres", "postgres://u:***@h/db"],
    );
    becomes(&["x", "redis://:p@h:6379/0"], &["x", "redis://:***@h:6379/0"]);
    becomes(&["x", "postgres://u:p@ss@h/db"], &["x", "postgres://u:***@h/db"]);
    becomes(&["x", "postgres://u:p/w@h/db"], &["x", "postgres://u:***@h/db"]);
    becomes(&["x", "DATABASE_URL=postgres://u:p@h/db"], &["x", "DATABASE_URL=postgres://u:***@h/db"]);
    becomes(&["uvx", "git+https://abc@github.com/o/r@v1"], &["uvx", "git+https://***@github.com/o/r@v1"]);
    becomes(&["x", "https://h/sse?api_key=abc&x=1#f"], &["x", "https://h/sse?api_key=***&x=1#f"]);
    stays(&["x", "ssh://git@github.com/o/r", "postgres://u@h/db", "http://[::1]:80/@x", "http://h:80/@s/p"]);
    stays(&["uvx", "--from", "git+https://github.com/o/r@v1", "server"]);
}

#[test]
fn headers() {
    becomes(
        &["mcp-remote", "https://h", "--header", "Authorization: Bearer abc"],
        &["mcp-remote", "https://h", "--header", "Authorization: Bearer ***"],
    );
    becomes(
        &["mcp-remote", "--header", "Authorization:Bearer abc"],
        &["mcp-remote", "--header", "Authorization:Bearer ***"],
    );
    becomes(&["curl", "-H", "X-Api-Key:abc"], &["curl", "-H", "X-Api-Key:***"]);
    becomes(&["curl", "-H", "Accept: text/html"], &["curl", "-H", "Accept: text/html"]);
    becomes(
        &["x", "--header", "Authorization:", "Bearer", "abc"],
        &["x", "--header", "Authorization:", "Bearer", "***"],
    );
    becomes(&["curl", "-u", "me:abc", "https://h"], &["curl", "-u", "me:***", "https://h"]);
}

#[test]
fn titles_and_scripts_are_command_lines() {
    becomes(
        &["npm exec mcp-remote https://h/sse --header Authorization: Bearer abc --allow-http"],
        &["npm exec mcp-remote https://h/sse --header Authorization: Bearer *** --allow-http"],
    );
    becomes(
        &["sh", "-c", "TOKEN=abc; node server.js --secret 'a b' --x && echo done"],
        &["sh", "-c", "TOKEN=***; node server.js --secret '***' --x && echo done"],
    );
    becomes(&["bash", "-lc", "API_KEY=abc npx -y server-x"], &["bash", "-lc", "API_KEY=*** npx -y server-x"]);
    becomes(
        &["supergateway", "--stdio", "npx -y x --token abc --port 1"],
        &["supergateway", "--stdio", "npx -y x --token *** --port 1"],
    );
    becomes(
        &["x", r#"--config={"token":"a b","n":1,"api_key": "c","Authorization":"Bearer d"}"#],
        &["x", r#"--config={"token":"***","n":1,"api_key": "***","Authorization":"***"}"#],
    );
    becomes(&["x", r#"{\"token\":\"a\",\"n\":1}"#], &["x", r#"{\"token\":\"***\",\"n\":1}"#]);
    becomes(&["x", r#"{"token":12,"n":1}"#], &["x", r#"{"token":***,"n":1}"#]);
}

#[test]
fn well_known_shapes() {
    for (token, shown) in [
        ("sk-ant-api03-AbCdEfGhIjKlMnOp0123456789-xy_z", "sk-ant-***"),
        ("sk-0123456789abcdef0123456789abcdef", "sk-***"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_***"),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv", "github_pat_***"),
        ("xoxb-123456789012-abcdefghijkl", "xoxb-***"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJ***"),
    ] {
        becomes(&["node", "s.js", token], &["node", "s.js", shown]);
        becomes(&["node", "s.js", &format!("--x={token}")], &["node", "s.js", &format!("--x={shown}")]);
        becomes(&[&format!("title of {token}, it is")], &[&format!("title of {shown}, it is")]);
    }
    becomes(&["x", "-----BEGIN RSA PRIVATE KEY-----\nMII"], &["x", "-----BEGIN RSA PRIVATE KEY-----***"]);
}

#[test]
fn short_options_only_where_unambiguous() {
    becomes(&["sshpass", "-p", "abc", "ssh", "h"], &["sshpass", "-p", "***", "ssh", "h"]);
    becomes(&["timeout", "5", "/usr/bin/sshpass", "-pabc"], &["timeout", "5", "/usr/bin/sshpass", "-p***"]);
    becomes(&["docker", "login", "-u", "me", "-p", "abc"], &["docker", "login", "-u", "me", "-p", "***"]);
    becomes(&["mysql", "-pabc", "db"], &["mysql", "-p***", "db"]);
    stays(&["mysql", "-p", "db"]);
    stays(&["docker", "run", "-p", "80:80", "img"]);
    stays(&["npx", "-p", "pkg", "bin"]);
    stays(&["claude", "-p", "explain this"]);
    stays(&["ssh", "-p", "2222", "h"]);
}

#[test]
fn programs_stay() {
    stays(&["npm exec @modelcontextprotocol/server-filesystem /tmp"]);
    stays(&["node", "/home/u/.npm/_npx/0123456789abcdef0123/node_modules/.bin/mcp-server-token-auth"]);
    stays(&["npx", "--auth", "server.js"]);
    stays(&["npx", "--token", "@auth/secret-server"]);
    stays(&["/opt/secret=1/token-server", "--no-auth", "x"]);
    stays(&["docker", "run", "-i", "ghcr.io/o/github-token-mcp:latest", "stdio"]);
    stays(&["docker", "run", "auth-token:1.0"]);
    stays(&["npm", "run", "auth:dev"]);
    stays(&["sk-learn-mcp-server-with-a-long-name", "/opt/sk-learn-mcp-server-of-2024/index.js"]);
    stays(&["python", "-m", "mcp_server_secrets"]);
    stays(&["claude", "mcp", "serve"]);
    stays(&["uv", "tool", "uvx", "--with", "httpx==0.28", "mcp-server-auth"]);
}

/// Values that begin like a reference to a secret and are not one.
#[test]
fn a_reference_that_is_not_whole() {
    for value in ["{{", "{{}", "${", "<", "$"] {
        becomes(&["x", "--token", value], &["x", "--token", "***"]);
    }
    stays(&["x", "--token", "{{token}}"]);
}

#[test]
fn what_is_about_a_secret_is_none() {
    stays(&["x", "--token-file", "/run/t", "--auth-type", "none", "--password-stdin", "--max-tokens=100"]);
    stays(&["env", "GIT_AUTHOR_NAME=me", "TOKEN_URL=https://h/t", "PWD=/x", "SSH_AUTHORITY=y", "MONKEY=1"]);
    stays(&["x", "--token", "--port", "1"]);
    stays(&["x", "--token"]);
    stays(&["x", "--token", ""]);
    stays(&[]);
    stays(&[""]);
}

/// With quadratic time this would take minutes.
#[test]
fn time_is_linear() {
    const SIZE: usize = 50_000;
    let pieces = [
        "a://b:x/",
        "sk-",
        "eyJ.",
        "-ghp_",
        "token=",
        "\"token\":\"",
        "--token ",
        "\\\"",
        "Bearer ",
        "a:b@",
        "xoxb-a",
    ];
    for piece in pieces {
        let text = piece.repeat(SIZE / piece.len());
        let began = std::time::Instant::now();
        assert_eq!(argv(vec!["x".to_owned(), text.clone(), text]).len(), 3);
        assert!(began.elapsed().as_secs() < 20, "{piece}: {:?}", began.elapsed());
    }
}

/// Pieces of command lines, secrets and delimiters in any order.
fn hostile() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        5 => prop::sample::select(vec![
            "--token", "--api-key=", "-p", "-e", "-H", "-c", "sshpass", "mysql", "curl", "-u", "TOKEN=", "Authorization:",
            "Bearer", "bearer ", "sk-", "ghp_", "0123456789abcdefABCDEF01", "eyJ", "://", "http://", "postgres://u:p@h", "@",
            ":", "=", "\"", "'", "\\", "\\\"", "{", "}", ",", ";", "&", "?", "#", "/", " ", "  ", "\n", "***", "a", "b.js",
            "\"token\":", "\"key\":\"", "-----BEGIN PRIVATE KEY-----", "\u{202e}", "\u{85}", "é", "-", "--", "x",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let argument = prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    prop::collection::vec(argument, 0..8)
}

/// A secret that no other part of a command line contains.
fn secret() -> impl Strategy<Value = String> {
    "[A-Z][a-zA-Z0-9!%^*+~]{6,30}Q"
}

proptest! {
    #[test]
    fn total_and_idempotent(arguments in hostile()) {
        let once = argv(arguments.clone());
        prop_assert_eq!(once.len(), arguments.len());
        prop_assert_eq!(&argv(once.clone()), &once);
    }

    #[test]
    fn total_and_idempotent_where_the_kernel_cut(arguments in hostile()) {
        let once = super::argv(arguments.clone(), true);
        prop_assert_eq!(once.len(), arguments.len());
        prop_assert_eq!(&super::argv(once.clone(), true), &once);
    }

    #[test]
    fn the_program_stays(arguments in hostile(), program in "[a-zA-Z0-9_/.@=-]{1,40}") {
        let mut arguments = arguments;
        arguments.insert(0, program.clone());
        let shown = argv(arguments);
        prop_assert_eq!(shown.first(), Some(&program));
    }

    #[test]
    fn a_secret_never_shows(secret in secret(), place in 0usize..14) {
        let whole = |text: String| vec!["node".to_owned(), "s.js".to_owned(), text];
        let option = |option: &str| vec!["node".to_owned(), "s.js".to_owned(), option.to_owned(), secret.clone(), "--last".to_owned()];
        let arguments = match place {
            0 => option("--token"),
            1 => option("--db-password"),
            2 => whole(format!("--secret={secret}")),
            3 => whole(format!("ACCESS_TOKEN={secret} {secret}")),
            4 => whole(format!("mongodb+srv://me:{secret}@h/db?x=1")),
            5 => whole(format!("Authorization: Bearer {secret}")),
            6 => whole(format!(r#"{{"env":{{"X_TOKEN":"{secret} {secret}"}},"b":1}}"#)),
            7 => vec![format!("npm exec x --api-key {secret} --last")],
            8 => vec!["sh".to_owned(), "-c".to_owned(), format!("A_SECRET='{secret} {secret}' node s.js")],
            9 => whole(format!("https://h/p?x=1&access_token={secret}")),
            10 => vec!["docker".to_owned(), "run".to_owned(), "-e".to_owned(), format!("PASSWORD={secret} x"), "img".to_owned()],
            11 => vec!["sshpass".to_owned(), format!("-p{secret}")],
            12 => vec!["x".to_owned(), "--header".to_owned(), format!("x-api-key:{secret}")],
            _ => vec![format!("title DB_PASSWD={secret}")],
        };
        let shown = argv(arguments).join(" ");
        prop_assert!(!shown.contains(&secret), "{}", shown);
        prop_assert!(shown.contains("***"));
    }
}

//! What is shown and what is not, and the properties of redaction.

use proptest::prelude::*;

use super::{MASK, is_masked};

mod shapes;

/// Redacts arguments given as a list.
fn redact(arguments: &[&str]) -> Vec<String> {
    super::argv(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
}

#[track_caller]
fn becomes(arguments: &[&str], expected: &[&str]) {
    assert_eq!(redact(arguments), expected, "from {arguments:?}");
}

#[test]
fn what_a_name_announces_is_masked_whatever_it_is() {
    for value in
        ["hunter2", "run", "8080", "true", "/etc/passwd", "https://h/x", "s.js", "-hunter2-", "two words"]
    {
        becomes(&["x", "--token", value, "--port", "1"], &["x", "--token", MASK, "--port", "1"]);
    }
    for name in [
        "--api-key",
        "--apiKey",
        "--db_password",
        "API_KEY",
        "MYAPIKEY",
        "PGPASSWORD",
        "-Dspring.password",
        "auth.pass",
    ] {
        becomes(&["x", &format!("{name}=8080")], &["x", &format!("{name}={MASK}")]);
    }
    becomes(
        &["x", "--header", "Authorization:", "Bearer", "1", "start"],
        &["x", "--header", MASK, MASK, MASK, "start"],
    );
    becomes(&["x", "--token", "--port", "1"], &["x", "--token", "--port", "1"]);
    becomes(&["x", "--no-auth", "run"], &["x", "--no-auth", "run"]);
}

#[test]
fn a_letter_with_its_value_is_no_option() {
    becomes(&["mysql", "-pabcd", "-uroot"], &["mysql", "-p***", "-u***"]);
    becomes(&["docker", "run", "-it", "img", "-pKEY=a"], &["docker", "run", "-it", "img", "-p***"]);
    // The name of a container is told to whoever shall stop it, and a replay knows the container by it.
    let digest = "0a".repeat(32);
    for line in [
        &["docker", "run", "-i", "--name", "s04Kl-box", "img"][..],
        &["/usr/bin/podman", "exec", "-it", "-u", "1000", "s04Kl_box", "sh"],
        &["docker", "start", "--attach", "--interactive", &digest],
        &["docker", "attach", "x9Ypq8"],
    ] {
        becomes(line, line);
    }
    becomes(
        &["x", "-\u{e9}t\u{e9}", "-", "--", "-----BEGIN KEY-----\nMII"],
        &["x", "-***", "-", "--", "--***"],
    );
}

#[test]
fn a_path_is_masked_in_parts() {
    becomes(&["x", "/home/u/x7Qa9/app"], &["x", "/home/u/***/app"]);
    becomes(&["node", "/nix/store/0c5n7zr0q2v9m1x8-nodejs/bin/s.js"], &["node", "/nix/store/***/bin/s.js"]);
    becomes(&["x", "dist/index.js", "scott/tiger"], &["x", "dist/index.js", MASK]);
}

#[test]
fn an_address_is_shown_without_user_and_query() {
    for (url, shown) in [
        ("https://mcp.example.com:8080/sse", "https://mcp.example.com:8080/sse"),
        ("https://mcp.example.com/sse?a=b#c", "https://mcp.example.com/sse?***"),
        ("postgres://u:p@db:5432/app", "postgres://***@db:5432/app"),
        ("postgres://u:p/w@db/app", "postgres://***"),
        ("postgres://u:12/w@db/app", "postgres://***"),
        ("https://0a1b2c3d4e@sentry.io/1", "https://***@sentry.io/1"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("https://ab/0a1b2c3d@h/x", "https://***"),
        ("git+https://github.com/o/r@v1.2", "git+https://github.com/o/r@v1.2"),
        ("https://h?u:p@x", "https://***"),
    ] {
        becomes(&["x", url, &format!("--url={url}")], &["x", shown, &format!("--url={shown}")]);
    }
}

#[test]
fn an_argument_of_many_words_is_shown_where_it_is_a_command_line() {
    becomes(&["claude", "-p", "run the test"], &["claude", "-p", MASK]);
    becomes(
        &["npm exec mcp-remote https://h/sse --header Authorization: Bearer abc 1 --allow-http"],
        &["npm exec mcp-remote https://h/sse --header *** --allow-http"],
    );
    becomes(
        &[
            "sh",
            "-c",
            "cd /srv && A_TOKEN=abc exec npx -y server-x --secret 'a run' run --port 1 | tee 'a b'",
        ],
        &["sh", "-c", "cd /srv && A_TOKEN=*** exec npx -y server-x --secret *** --port 1 | tee ***"],
    );
    becomes(
        &["supergateway", "--stdio", "npx -y x --port 1"],
        &["supergateway", "--stdio", "npx -y x --port 1"],
    );
    let script = "cd /srv/job-1; exec node s.js; x a1b2c3;";
    let shown = "cd /srv/job-1; exec node s.js; x ***;";
    becomes(&["sh", "-c", script], &["sh", "-c", shown]);
    becomes(&["sh", "-ce", script], &["sh", "-ce", shown]);
    becomes(&["bash", "-c", "--", script], &["bash", "-c", "--", shown]);
    // No shell.
    becomes(&["http", "-dca", "alice:hunter2"], &["http", "-dca", "***"]);
    becomes(&["x", "-c", "--", "hunter2"], &["x", "-c", "--", "***"]);
    becomes(&["x", "Authorization::///node", "node"], &["x", "Authorization:://***", "***"]);
    // An option of the script.
    becomes(&["bash", "run.sh", "-ca", "hunter2"], &["bash", "run.sh", "-ca", "***"]);
    let code = "from multiprocessing.forkserver import main; main(5, 6, ['__main__'], **{'key': 'abc'})";
    let shown = "from multiprocessing.forkserver import main; main(5, 6, ***";
    becomes(&["python3", "-I", "-c", code], &["python3", "-I", "-c", shown]);
}

#[test]
fn what_is_empty_stays_so() {
    becomes(&[], &[]);
    becomes(&[""], &[""]);
    becomes(&["x", "", " ", "--a="], &["x", "", MASK, "--a="]);
    assert!(is_masked("--x=***") && !is_masked("--x=**"));
}

/// With quadratic time this would take minutes.
#[test]
fn time_is_linear() {
    const SIZE: usize = 50_000;
    for piece in ["a://b:x/", "a=", "aB", "token=", "--token ", "\\\"", "'", "a:b@", "/", "-", "run ", "a.js"]
    {
        let text = piece.repeat(SIZE / piece.len());
        let began = std::time::Instant::now();
        assert_eq!(redact(&[&text, "-c", &text, &text]).len(), 4);
        assert!(began.elapsed().as_secs() < 20, "{piece}: {:?}", began.elapsed());
    }
}

/// Pieces of command lines, secrets and delimiters in any order.
fn hostile() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        5 => prop::sample::select(vec![
            "--token", "--api-key=", "-p", "-e", "-H", "-c", "node", "npx", "docker", "run", "start", "-u", "TOKEN=", "Authorization:",
            "Bearer", "bearer ", "sk-", "ghp_", "0123456789abcdefABCDEF01", "eyJ", "://", "http://", "postgres://u:p@h", "@",
            ":", "=", "\"", "'", "\\", "\\\"", "{", "}", ",", ";", "&", "?", "#", "/", " ", "  ", "\n", "***", "a", "b.js",
            "\"token\":", "\"key\":\"", "-----BEGIN PRIVATE KEY-----", "\u{202e}", "\u{85}", "é", "-", "--", "x", "&&", "--name",
            "from multiprocessing.forkserver import main; main(5, ",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let argument = prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    prop::collection::vec(argument, 0..8)
}

/// Values as machines draw them: text, base64, base32, hexadecimal, UUIDs, tokens of JSON, unicode.
fn drawn() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9]{12}[0-9][A-Z][0-9][a-z]{2}[0-9][A-Z]",
        "([A-Za-z0-9+]{6,12}[0-9][a-z][0-9]{2}/)?[A-Za-z0-9+]{10,28}[0-9][a-z][0-9]{2}[A-Z]{2}[0-9]={0,2}",
        "[A-Z2-7]{8,32}[2-7][A-Z][2-7]{2}[A-Z][2-7]={0,6}",
        // 64 of them behind `start` are the number of a container.
        "[0-9a-f]{20,63}",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "eyJ[A-Za-z0-9_-]{20,40}\\.eyJ[A-Za-z0-9_-]{20,40}\\.[A-Za-z0-9_-]{43}",
        "[а-яé]{6,12}[0-9]{3}",
    ]
    .prop_filter("a drawn value has letters and digits", |drawn| {
        drawn.contains(|c: char| c.is_ascii_digit()) && drawn.contains(char::is_alphabetic)
    })
}

/// Where a secret may be in a command line; `§` is the secret.
const PLACES: &[&[&str]] = &[
    &["x", "§"],
    &["node", "§"],
    &["npx", "-y", "§"],
    &["x", "run", "§"],
    &["x", "--name", "§"],
    &["x", "-m", "§"],
    &["x", "--value=§"],
    &["x", "-x§"],
    &["x", "-x=§"],
    &["x", "--§"],
    &["x", "KEY=§"],
    &["x", "§=1"],
    &["x", "/srv/§/app"],
    &["node", "./§/index.js"],
    &["x", "§.json"],
    &["npx", "-y", "@scope/name@§"],
    &["uvx", "name==§"],
    &["docker", "run", "-i", "img:§"],
    &["docker", "run", "-e", "A=§", "img", "§"],
    &["x", "https://§@h/x"],
    &["x", "https://u:§@h/x"],
    &["x", "https://h/§/x"],
    &["x", "https://h/x?§"],
    &["x", "https://h/x?a=1&b=§#§"],
    &["x", "https://h/x#§"],
    &["x", "https://§.example.com/x"],
    &["x", "{\"a\":\"§\",\"b\":[\"§\"]}"],
    &["x", "--config={\"env\": {\"A\": \"§\"}}"],
    &["x", "line\n§\nline"],
    &["sh", "-c", "A=§; B='§ x' node s.js § | tee §"],
    &["sh", "-c", "curl -u me:§ -H \"A: §\" https://h"],
    &["npm exec server § --value § --a=§"],
    &["title of §"],
    &["python", "-c", "print('§', §)"],
    &["x", "host=h user=§"],
    &["x", "me:§@tcp(h:1)/d"],
    &["x", "me:§"],
    &["x", "§,§"],
];
/// The same, where a name announces it.
const ANNOUNCED: &[&[&str]] = &[
    &["x", "--token", "§"],
    &["npx", "-y", "x", "--api-key", "§"],
    &["x", "--password=§"],
    &["x", "/password:§"],
    &["env", "DB_PASSWORD=§", "node", "s.js"],
    &["docker", "run", "-e", "NOTION_TOKEN=§", "img"],
    &["x", "-H", "§"],
    &["x", "--header", "Authorization:", "Bearer", "§"],
    &["sh", "-c", "A_SECRET='§ §' node s.js --key § §"],
    &["sh", "-ce", "A_SECRET='§ §' node s.js --key § §"],
    &["npm exec x --auth § § --port 1"],
];

fn line(place: &[&str], secret: &str) -> Vec<String> {
    place.iter().map(|argument| argument.replace('§', secret)).collect()
}

/// Whether eight letters of the secret in a row are visible. A path may have a part that is shorter.
fn shows(redacted: &[String], secret: &str) -> bool {
    let letters: Vec<char> = secret.chars().collect();
    letters
        .windows(8.min(letters.len()))
        .any(|part| redacted.join("\n").contains(&part.iter().collect::<String>()))
}

proptest! {
    #[test]
    fn total_and_idempotent(arguments in hostile()) {
        let once = super::argv(&arguments);
        prop_assert_eq!(once.len(), arguments.len());
        prop_assert_eq!(&super::argv(&once), &once);
    }

    #[test]
    fn the_program_stays(mut arguments in hostile(), program in "[a-zA-Z0-9_/.@=-]{1,40}") {
        arguments.insert(0, program.clone());
        let shown = super::argv(&arguments);
        prop_assert_eq!(shown.first(), Some(&program));
    }

    #[test]
    fn what_was_drawn_never_shows(secret in drawn(), place in prop::sample::select(PLACES)) {
        let shown = super::argv(&line(place, &secret));
        prop_assert!(!shows(&shown, &secret), "{} in {:?}", secret, shown);
    }

    #[test]
    fn what_was_announced_never_shows(secret in "[a-z]{6,10}(-[a-z]{6,10})?|[0-9]{6,8}|/[a-z]{8}", place in prop::sample::select(ANNOUNCED)) {
        let shown = super::argv(&line(place, &secret));
        prop_assert!(!shows(&shown, &secret), "{} in {:?}", secret, shown);
    }

    /// However the line goes on.
    #[test]
    fn nothing_shows_amid_anything(before in hostile(), secret in drawn(), after in hostile()) {
        let arguments = [vec!["x".to_owned()], before, vec![secret.clone()], after].concat();
        let shown = super::argv(&arguments);
        prop_assume!(!arguments.iter().any(|other| *other != secret && shows(std::slice::from_ref(other), &secret)));
        prop_assert!(!shows(&shown, &secret), "{} in {:?}", secret, shown);
    }
}

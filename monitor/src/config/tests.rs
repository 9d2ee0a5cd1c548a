use std::path::Path;

use proptest::prelude::*;

use super::*;
use orphand_core::{model::Image, recognise::Role};

mod files;
mod merge;
mod sessions;
mod table;

fn parse(text: &str) -> Result<Config, Box<Mistake>> {
    Config::parse(text, Path::new("/etc/orphand/config.toml"))
}

/// The first line that a user sees, without its example, which must be one of the table's.
fn told(text: &str) -> String {
    let line = parse(text).expect_err("an error").to_string();
    assert!(!line.contains('\n'), "{line:?} is one line");
    let (line, example) = ["; for example: ", " For example: "]
        .iter()
        .find_map(|mark| line.split_once(mark))
        .map_or((line.as_str(), None), |(line, example)| (line, Some(example)));
    let of_keys = || options::sections().flat_map(|section| &section.keys).map(options::Key::example);
    assert!(example.is_none_or(|example| of_keys().any(|known| known == example)), "{example:?}");
    line.strip_prefix("/etc/orphand/config.toml:").unwrap_or(line).to_owned()
}

#[test]
fn nothing_is_the_defaults() {
    assert_eq!(parse("").unwrap(), Config::default());
    assert_eq!(parse("# nothing\n").unwrap(), Config::default());
    let config = Config::default();
    assert_eq!((config.grace, config.term_timeout), (Duration::from_secs(10), Duration::from_secs(5)));
    assert_eq!(config.mode(), Mode::Enforce);
}

#[test]
fn everything_is_read() {
    let config = parse(
        r#"
        observe = true
        grace = "500ms"
        listen = "[::1]:9000"
        alert = ["orphans > 10 for 1m"]
        [[hook]]
        path = "/usr/local/bin/tell"
        user = "nobody"
        events = ["orphan_reaped", "alert"]
        [[agent]]
        name = "bot"
        program = "my*bot run --*"
        [[program]]
        kind = "server"
        name = "tools"
        program = "/srv/tools/server.py"
        [[exempt]]
        name = "mine"
        program = "@me/keep"
        [[program]]
        kind = "supervisor"
        name = "boss"
        program = "/opt/boss/*"
        [[program]]
        kind = "launcher"
        name = "go"
        program = "golaunch"
        [[program]]
        kind = "multiplexer"
        name = "mux"
        program = "mux"
        "#,
    )
    .unwrap();
    assert_eq!(config.mode(), Mode::Observe);
    assert_eq!(config.grace, Duration::from_millis(500));
    assert_eq!(config.listen.to_string(), "[::1]:9000");
    assert_eq!(config.alert[0].above, 10);
    let hook = &config.hook[0];
    assert_eq!(
        (hook.path.as_path(), hook.user.as_deref()),
        (Path::new("/usr/local/bin/tell"), Some("nobody"))
    );
    assert_eq!(hook.events.iter().collect::<Vec<_>>(), ["alert", "orphan_reaped"]);
    assert_eq!(parse(&config.render()).unwrap(), config);
    let role = |line: &[&str]| {
        let argv: Vec<String> = line.iter().map(ToString::to_string).collect();
        config.rules().role(&Image { exe: argv[0].clone(), argv, argv_truncated: false })
    };
    assert_eq!(role(&["myxbot", "run", "--x"]), Role::Agent { name: "bot".into() });
    assert_eq!(role(&["myxbot", "stop", "--x"]), Role::Other { name: "myxbot".into() });
    assert_eq!(
        role(&["python3", "/srv/tools/server.py"]),
        Role::Server { name: "tools".into(), rule: "tools".into() }
    );
    // the rules can be read back from a trace
    let again = Rules::from_source(&config.rules().source()).unwrap();
    assert_eq!(again.source(), config.rules().source());
    assert_eq!(Rules::default().source(), "");
}

#[test]
fn errors_say_where_and_what_to_do() {
    for (text, line) in [
        ("graec = \"1s\"", "1:1: unknown key \"graec\": did you mean \"grace\"?"),
        ("\n  work-grace = \"1s\"", "2:3: unknown key \"work-grace\": did you mean \"work_grace\"?"),
        ("obs = true", "1:1: unknown key \"obs\": did you mean \"observe\"?"),
        ("[[agents]]\nname = \"x\"", "1:3: unknown key \"agents\": did you mean \"agent\"?"),
        (
            "zzz = 1",
            "1:1: unknown key \"zzz\": known keys are observe, found, grace, abandoned_grace, work_grace, recognise_protocol, listen, \
             alert, hook, sessions, containers, exempt, agent, program",
        ),
        (
            "[[program]]\nname = \"x\"\nprogramm = \"y\"",
            "3:1: unknown key \"programm\" in [[program]]: did you mean \"program\"?",
        ),
        (
            "grace = \"10 parsecs\"",
            "1:9: grace: \"10 parsecs\" is not a duration: write it like \"500ms\", \"10s\", \"5m\", \"24h\"",
        ),
        (
            "alert = [\"blind\", \"orphans\"]",
            "1:9: alert: \"orphans\" is no alert: it has no limit, such as > 10",
        ),
        ("[[alert]]\nname = \"x\"", "1:1: alert: invalid type: map, expected a string"),
        ("grace = 10", "1:9: grace: invalid type: integer `10`, expected a string"),
        ("observe = \"yes\"", "1:11: observe: invalid type: string \"yes\", expected a boolean"),
        (
            "a = 1\nobserve = \"loud\"\n",
            "1:1: unknown key \"a\": known keys are observe, found, grace, abandoned_grace, work_grace, recognise_protocol, listen, \
             alert, hook, sessions, containers, exempt, agent, program",
        ),
        (
            "grace = \"1s\"\n[[agent]]\nname = \"x\"\n",
            "2:1: agent: rule \"x\" matches everything: add program, unit or user",
        ),
        (
            "listen = \"9477\"",
            "1:10: listen: \"9477\" is not an address: write it like \"127.0.0.1:9477\" or \"[::1]:9477\", or \"none\" for off",
        ),
        ("[[agent]]\nprogram = \"x\"\n", "1:1: agent: missing field `name`"),
        (
            "[[agent]]\nname = \"\"\nprogram = \"x\"\n",
            "1:1: agent: a rule needs a name of 1 to 64 printable characters",
        ),
        (
            "[[agent]]\nname = \"x\"\nprogram = \"python3\"",
            "1:1: agent: rule \"x\": \"python3\" runs other programs: name the script, module or package that it runs",
        ),
        ("[[agent]]\nname = \"x\"\nprogram = \" \"", "1:1: agent: rule \"x\": program is empty"),
        (
            "[[agent]]\nname = \"x\"\nprogram = 1",
            "3:11: agent.program: invalid type: integer `1`, expected a string",
        ),
        ("agent = 1", "1:1: agent: expected a list of tables: write [[agent]] and its keys below it"),
        ("[[hook]]\npaht = \"/x\"", "2:1: unknown key \"paht\" in [[hook]]: did you mean \"path\"?"),
        (
            "[[hook]]\nevents = [\"orphan_detectd\"]",
            "2:10: hook.events: unknown event \"orphan_detectd\": did you mean \"orphan_detected\"?",
        ),
        ("[[hook]]\npath = \"tell\"", "2:8: hook.path: not an absolute path"),
        ("hook = \"/x\"", "1:1: hook: expected a list of tables: write [[hook]] and its keys below it"),
        ("grace = \"1s\"\ngrace = \"2s\"", "2:1: duplicate key"),
        ("grace = ", "1:9: string values must be quoted, expected literal string"),
        ("grace = \"1s\" # ä\n= 2", "2:1: "),
        (
            "found = \"end\" # ö\nobserve = \"é\"",
            "2:11: observe: invalid type: string \"é\", expected a boolean",
        ),
        ("grc = [\"ä\"] + 1", "1:13: "),
    ] {
        let found = told(text);
        if line.ends_with(": ") {
            assert!(found.starts_with(line), "{found}");
        } else {
            assert_eq!(found, line, "for {text:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in "[ -~\n\"=\\[\\]äß]{0,80}") {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

#[test]
fn a_key_that_is_gone_is_named_with_what_does_the_same() {
    for (text, line) in [
        (
            "ring_size = 5000",
            "1:1: the key \"ring_size\" is gone: orphand run --ring-size BYTES does the same",
        ),
        (
            "[[server]]\nname = \"x\"",
            "1:3: the key \"server\" is gone: write [[program]] with kind = \"server\"",
        ),
        (
            "[[agent]]\nname = \"x\"\nscript = \"/x\"",
            "3:1: the key \"script\" in [[agent]] is gone: program takes a path, too",
        ),
        (
            "[sessions]\ninterval = \"15s\"",
            "2:1: the key \"interval\" in [sessions] is gone: it follows from idle",
        ),
        ("[[hook]]\ntimeout = \"2h\"", "2:1: the key \"timeout\" in [[hook]] is gone: it is 10s"),
    ] {
        assert_eq!(told(text), line, "{text}");
    }
}

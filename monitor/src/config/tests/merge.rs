//! Several files, and tables of every kind.

use super::super::*;

fn load(all: &[&str]) -> Loaded {
    let inputs = all.iter().enumerate().map(|(number, text)| files::Input {
        path: format!("{number}.toml").into(),
        text: Some((*text).to_owned()),
        errors: Vec::new(),
    });
    Loaded::of_inputs(inputs.collect(), None)
}

#[test]
fn later_values_beat_and_rules_are_added() {
    let loaded = load(&[
        "grace = \"1s\"\nobserve = true\n[[agent]]\nname = \"a\"\nprogram = \"a\"\n",
        "agent = [{ name = \"b\", program = \"b\" }]\ngrace = \"2s\"\n",
        "[[agent]]\nprogram = \"c\"\nname = \"c\"\n[[exempt]]\nname = \"d\"\nprogram = \"d\"\n",
    ]);
    let config = loaded.config.unwrap();
    assert_eq!((config.grace, config.observe), (Duration::from_secs(2), true));
    assert_eq!(config.agent.iter().map(Rule::name).collect::<Vec<_>>(), ["a", "b", "c"]);
    let place = |key: &str, index: usize| loaded.origins.location(key, index).unwrap().to_string();
    assert_eq!(place("grace", 0), "1.toml:2:1");
    assert_eq!(place("observe", 0), "0.toml:2:1");
    assert_eq!([0, 1, 2].map(|i| place("agent", i)), ["0.toml:3:1", "1.toml:1:10", "2.toml:1:1"]);
    assert_eq!(loaded.notes, []);
}

#[test]
fn every_mistake_of_every_file_is_told() {
    let loaded = load(&[
        "grace = 1\n[[exempt]]\nname = \"a\"\nprogram = 1\n[[exempt]]\nbar = 2\nfoo = 3\n[[agent]]\nname = \"b\"\n",
        "observe = true\nobserve = true\n",
        "work_grace = 1\ngrace = \"2s\"\n",
    ]);
    let told: Vec<_> = loaded.config.unwrap_err().iter().map(ToString::to_string).collect();
    let heads: Vec<_> =
        told.iter().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    assert_eq!(
        heads,
        [
            "0.toml:1:9: grace",
            "0.toml:4:11: exempt.program",
            "0.toml:6:1: unknown key \"bar\" in [[exempt]]",
            "0.toml:7:1: unknown key \"foo\" in [[exempt]]",
            "0.toml:8:1: agent",
            "1.toml:2:1: duplicate key",
            "2.toml:1:14: work_grace",
        ],
        "{told:#?}"
    );
}

#[test]
fn of_too_many_mistakes_the_first_are_told_and_no_line_is_endless() {
    let all: String = (0..2 * ENOUGH).map(|n| ["k", &n.to_string(), " = 1\n"].concat()).collect();
    let below = ["[[agent]]\n", &all].concat();
    for text in [&all, &below] {
        let errors = load(&[text]).config.unwrap_err();
        let lines: Vec<_> = errors.iter().map(|error| error.location.line.unwrap()).collect();
        let first = lines[0];
        assert_eq!(lines, (first..first + ENOUGH).collect::<Vec<_>>());
    }
    let long = "x".repeat(5000);
    for text in [[long.as_str(), "= 1"].concat(), ["observe = \"", &long, "\""].concat()] {
        let errors = load(&[&text]).config.unwrap_err().to_string();
        assert!(errors.chars().count() < 600, "{errors}");
    }
}

/// Where the place of each rule is counted from the beginning of the file, this takes minutes.
#[test]
fn a_large_file_is_read_in_the_time_of_its_size() {
    let rule = |n: usize| format!("[[agent]]\nname = \"a{n}\"\nprogram = \"p{n}\"\n");
    let text: String = (0..24_000).map(rule).collect();
    assert!(load(&[&text]).config.is_ok());
    let errors = load(&[&text, &[&text, "é = 1"].concat()]).config.unwrap_err();
    let place = errors.iter().next().unwrap().location.clone();
    assert_eq!((place.line, place.column), (Some(72_001), Some(1)));
}

#[test]
fn what_is_hardly_meant_is_a_note() {
    let rule = |table: &str, name: &str, program: &str| {
        ["[[", table, "]]\nname = \"", name, "\"\nprogram = \"", program, "\"\n"].concat()
    };
    let first = [rule("agent", "a", "x"), rule("agent", "a", "y"), rule("exempt", "e", "x")].concat();
    let second = [
        rule("agent", "b", "x"),
        rule("program", "l", "y") + "kind = \"launcher\"\n",
        rule("program", "s", "y") + "kind = \"server\"\n",
        rule("exempt", "f", "x"),
    ]
    .concat();
    let loaded = load(&[&first, &second]);
    assert!(loaded.config.is_ok());
    assert_eq!(
        loaded.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "0.toml:4:1: agent: two rules are called \"a\": events cannot tell which of them matched (line 1)",
            "1.toml:1:1: agent: rule \"b\" has no effect: an earlier rule in [[agent]] has the same patterns (0.toml:1:1)",
            "1.toml:4:1: program: rule \"l\" has no effect: an earlier rule in [[agent]] has the same patterns (0.toml:4:1)",
            "1.toml:12:1: exempt: rule \"f\" has no effect: an earlier rule in [[exempt]] has the same patterns (0.toml:7:1)",
        ]
    );
}

#[test]
fn what_never_comes_is_a_note() {
    let notes = |text: &str| {
        let loaded = load(&[text]);
        assert!(loaded.config.is_ok(), "{text}");
        loaded.notes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let only_alerts = "[[hook]]\npath = \"/x\"\nevents = [\"alert\", \"alert_resolved\"]\n";
    let never = "0.toml:1:1: hook: without alert there is none of its events, so the hook never runs";
    assert_eq!(notes(only_alerts), [never]);
    assert_eq!(notes(&["alert = [\"rss > 1G\"]\n", only_alerts].concat()), [""; 0]);
    assert_eq!(notes("[[hook]]\npath = \"/x\"\n"), [""; 0]);
    assert_eq!(
        notes("[[hook]]\npath = \"/x\"\nevents = []\n"),
        ["0.toml:1:1: hook: events is empty, so the hook never runs: name some events, or \"all\""]
    );
}

#[test]
fn tables_are_merged_key_by_key() {
    let loaded = load(&[
        "alert = [\"blind\"]\n[sessions]\nkey = \"a:{id}\"\nidle = \"1m\"\n",
        "alert = []\nsessions.idle = \"2m\"\n",
        "sessions = { key = \"b:{id}\" }\n",
    ]);
    let config = loaded.config.unwrap();
    let sessions = config.sessions.unwrap();
    assert_eq!((sessions.key.as_str(), sessions.interval()), ("b:{id}", Duration::from_secs(6)));
    assert_eq!(config.alert, [], "lists of values are values");
    let place = |key: &str| loaded.origins.location(key, 0).unwrap().to_string();
    assert_eq!(place("sessions.key"), "2.toml:1:14");
    assert_eq!(place("sessions.idle"), "1.toml:2:10");
    // Each file is right, and both together are not.
    let wrong = load(&["[sessions]\nvariable = \"A\"\n", "[sessions]\nflag = \"--a\"\n"]);
    let told = wrong.config.unwrap_err().to_string();
    assert!(told.starts_with("1.toml:1:2: sessions: variable and flag are both given"), "{told}");
}

#[test]
fn the_shape_of_a_table_is_told() {
    let table = "sessions: expected a table: write [sessions] and its keys below it";
    let list = "agent: expected a list of tables: write [[agent]] and its keys below it";
    for (text, told) in [
        ("sessions = 1", format!("0.toml:1:1: {table}")),
        ("[[sessions]]", format!("0.toml:1:3: {table}")),
        ("agent = 1", format!("0.toml:1:1: {list}")),
        ("[agent]", format!("0.toml:1:2: {list}")),
        ("agent = [1]", format!("0.toml:1:10: {list}")),
    ] {
        let found: Vec<_> = load(&[text]).config.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(found, [told]);
    }
}

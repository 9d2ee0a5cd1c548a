//! Several files, and tables of every kind.

use proptest::prelude::*;

use super::super::{
    check,
    options::{Key, Kind, Section},
    text::Texts,
    *,
};

fn texts(all: &[&str]) -> Texts {
    let mut texts = Texts::default();
    for (number, text) in all.iter().enumerate() {
        texts.push(format!("{number}.toml").into(), (*text).to_owned());
    }
    texts
}

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
        "grace = \"1s\"\nobserve = true\n[[server]]\nname = \"a\"\nprogram = \"a\"\n",
        "server = [{ name = \"b\", program = \"b\" }]\ngrace = \"2s\"\n",
        "[[server]]\nprogram = \"c\"\nname = \"c\"\n[[agent]]\nname = \"d\"\nprogram = \"d\"\n",
    ]);
    let config = loaded.config.unwrap();
    assert_eq!((config.grace, config.observe), (Duration::from_secs(2), true));
    assert_eq!(config.server.iter().map(Rule::name).collect::<Vec<_>>(), ["a", "b", "c"]);
    let place = |key: &str, index: usize| loaded.origins.location(key, index).unwrap().to_string();
    assert_eq!(place("grace", 0), "1.toml:2:1");
    assert_eq!(place("observe", 0), "0.toml:2:1");
    assert_eq!([0, 1, 2].map(|i| place("server", i)), ["0.toml:3:1", "1.toml:1:11", "2.toml:1:1"]);
    assert_eq!(loaded.notes, []);
}

#[test]
fn every_mistake_of_every_file_is_told() {
    let loaded = load(&[
        "grace = 1\n[[server]]\nname = \"a\"\nexe = 1\nscript = 2\nfoo = 3\n[[agent]]\nname = \"b\"\n",
        "observe = true\nobserve = true\n\n= 1\nunclosed = [\n",
        "work_grace = 1\ngrace = \"2s\"\n",
    ]);
    let told: Vec<_> = loaded.config.unwrap_err().iter().map(ToString::to_string).collect();
    let heads: Vec<_> =
        told.iter().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    assert_eq!(
        heads,
        [
            "0.toml:1:9: grace",
            "0.toml:4:7: server.exe",
            "0.toml:5:10: server.script",
            "0.toml:6:1: unknown key \"foo\" in [[server]]",
            "0.toml:7:1: agent",
            "1.toml:2:1: duplicate key",
            "1.toml:4:1: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`",
            "1.toml:5:13: unclosed array, expected `]`",
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
        let lines: Vec<_> = errors.iter().map(|error| error.content().unwrap().location.line).collect();
        let first = lines[0];
        assert_eq!(lines, (first..first + ENOUGH).collect::<Vec<_>>());
    }
    let long = "x".repeat(5000);
    for text in [[long.as_str(), "= 1"].concat(), ["observe = \"", &long, "\""].concat()] {
        let errors = load(&[&text]).config.unwrap_err().to_string();
        assert!(errors.chars().count() < 600, "{errors}");
    }
}

#[test]
fn what_is_hardly_meant_is_a_note() {
    let rule = |kind: &str, name: &str, program: &str| {
        ["[[", kind, "]]\nname = \"", name, "\"\nprogram = \"", program, "\"\n"].concat()
    };
    let first = [
        "socket = \"x.sock\"\n",
        &rule("server", "a", "x"),
        &rule("server", "a", "y"),
        &rule("exempt", "e", "x"),
    ]
    .concat();
    let second = [
        rule("server", "b", "x"),
        rule("agent", "a", "z"),
        rule("program", "l", "z") + "kind = \"launcher\"\n",
        rule("exempt", "f", "x"),
    ]
    .concat();
    let loaded = load(&[&first, &second]);
    assert!(loaded.config.is_ok());
    assert_eq!(
        loaded.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "0.toml:1:1: socket: \"x.sock\" depends on the directory that orphand is started in: write an absolute path",
            "0.toml:5:1: server: two rules are called \"a\": events cannot tell which of them matched (line 2)",
            "1.toml:1:1: server: rule \"b\" has no effect: an earlier rule in [[server]] has the same patterns (0.toml:2:1)",
            "1.toml:7:1: program: rule \"l\" has no effect: an earlier rule in [[agent]] has the same patterns (line 4)",
            "1.toml:11:1: exempt: rule \"f\" has no effect: an earlier rule in [[exempt]] has the same patterns (0.toml:8:1)",
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
    let alert =
        |name: &str, on: &str| ["[[alert]]\nname = \"", name, "\"\non = \"", on, "\"\nabove = 1\n"].concat();
    let only_alerts = "[[hook]]\npath = \"/x\"\nevents = [\"alert\", \"alert_resolved\"]\n";
    let never = "0.toml:1:1: hook: without an [[alert]] there is none of its events, so the hook never runs";
    assert_eq!(notes(only_alerts), [never]);
    assert_eq!(notes(&[only_alerts, &alert("a", "rss")].concat()), [""; 0]);
    assert_eq!(notes("[[hook]]\npath = \"/x\"\n"), [""; 0]);
    assert_eq!(
        notes("[[hook]]\npath = \"/x\"\nevents = []\n"),
        ["0.toml:1:1: hook: events is empty, so the hook never runs: name some events, or \"all\""]
    );
    assert_eq!(
        notes(&[alert("a", "rss"), alert("a", "orphans")].concat()),
        ["0.toml:5:1: alert: two alerts are called \"a\": events cannot tell them apart (line 1)"]
    );
    assert_eq!(notes(&alert("a", "reap_failures")), [""; 0]);
    assert_eq!(
        notes(&["observe = true\n", &alert("a", "reap_failures")].concat()),
        ["0.toml:2:1: alert: \"a\" is never raised: with observe nothing is ended, so nothing fails"]
    );
}

/// Tables of every kind.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Toy {
    speed: u8,
    hook: Option<Hook>,
    alert: Vec<Alert>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hook {
    path: PathBuf,
    #[serde(default)]
    events: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Alert {
    on: String,
    above: u64,
}

const fn key(name: &'static str, example: &'static str) -> Key {
    Key { name, form: "", default: None, limits: "", about: "", example }
}

const TOY: &[Section] = &[
    Section { name: "", kind: Kind::Top, about: "", keys: &[key("speed", "1")], example: "" },
    Section {
        name: "hook",
        kind: Kind::Table,
        about: "",
        keys: &[key("path", "\"/x\""), key("events", "[\"alert\"]")],
        example: "path = \"/x\"\n",
    },
    Section {
        name: "alert",
        kind: Kind::List,
        about: "",
        keys: &[key("on", "\"rss\""), key("above", "1")],
        example: "on = \"rss\"\nabove = 1\n",
    },
];

fn toy(all: &[&str]) -> Result<Toy, Vec<String>> {
    let read = check::read::<Toy>(&texts(all), TOY).map(|(toy, _)| toy);
    read.map_err(|found| found.iter().map(ToString::to_string).collect())
}

#[test]
fn tables_are_merged_key_by_key() {
    let hook = |path: &str, events: &[&str]| {
        Some(Hook { path: path.into(), events: events.iter().map(ToString::to_string).collect() })
    };
    let read = toy(&[
        "[hook]\npath = \"/a\"\nevents = [\"x\", \"y\"]",
        "hook.events = [\"z\"]",
        "hook = { path = \"/b\" }",
    ])
    .unwrap();
    assert_eq!(read.hook, hook("/b", &["z"]), "lists of values are values");
    // What is missing in one file may be in another.
    assert_eq!(toy(&["[hook]\nevents = []", "[hook]\npath = \"/a\""]).unwrap().hook, hook("/a", &[]));
    // What is missing is reported together with mistakes elsewhere, but not if they may be its cause.
    let lacking = "0.toml:1:1: hook: missing field `path`";
    let speed = "1.toml:1:9: speed: invalid type: string \"x\", expected u8; for example: speed = 1";
    assert_eq!(toy(&["[hook]", "speed = \"x\""]), Err(vec![lacking.to_owned(), speed.to_owned()]));
    let path =
        "0.toml:2:8: hook.path: invalid type: integer `1`, expected path string; for example: path = \"/x\"";
    assert_eq!(toy(&["[hook]\npath = 1"]), Err(vec![path.to_owned()]));
    assert_eq!(
        toy(&["", "speed = 1\n\n[hook]\nevents = []"]),
        Err(vec!["1.toml:3:1: hook: missing field `path`".to_owned()])
    );
}

#[test]
fn tables_that_are_no_rules_are_written_down_with_their_keys() {
    let file = written::default_file_of(TOY);
    assert!(file.contains("\n# - path:") && file.contains("\n# - events:"), "{file}");
    let taken: String =
        file.lines().filter_map(|line| line.strip_prefix("#     ")).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(toy(&[&taken]).unwrap().hook.unwrap().path, Path::new("/x"), "{taken}");
}

#[test]
fn the_shape_of_a_table_is_told() {
    let table = "hook: expected a table: write [hook] and its keys below it";
    let list = "alert: expected a list of tables: write [[alert]] and its keys below it";
    for (text, told) in [
        ("hook = 1", format!("0.toml:1:1: {table}")),
        ("[[hook]]\npath = \"/a\"", format!("0.toml:1:3: {table}")),
        ("[alert]\non = \"x\"", format!("0.toml:1:2: {list}")),
        ("alert = [1]", format!("0.toml:1:10: {list}")),
        ("alert.on = 1", format!("0.toml:1:1: {list}")),
        ("hook.path = 1", "0.toml:1:13: hook.path: invalid type: integer `1`, expected path string; for example: path = \"/x\"".to_owned()),
        ("[hook]\nspeed = 1", "0.toml:2:1: unknown key \"speed\" in [hook]: it is a top-level key: write it above the first [table]".to_owned()),
        ("[hook]\npaht = \"/x\"", "0.toml:2:1: unknown key \"paht\" in [hook]: did you mean \"path\"? For example: path = \"/x\"".to_owned()),
        ("above = 1", "0.toml:1:1: unknown key \"above\": it is a key of [[alert]]: write it below that header".to_owned()),
        ("[[alert]]\non = \"x\"", "0.toml:1:1: alert: missing field `above`".to_owned()),
    ] {
        assert_eq!(toy(&[text]), Err(vec![told]), "{text}");
    }
}

fn setting() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u8..60).prop_map(|n| format!("grace = \"{n}s\"\n")),
        any::<bool>().prop_map(|b| format!("observe = {b}\n")),
        Just(String::new()),
    ]
}

fn rules() -> impl Strategy<Value = String> {
    let rule = |name: &String| ["[[agent]]\nname = \"", name, "\"\nprogram = \"", name, "\"\n"].concat();
    prop::collection::vec("rule-[a-z]{1,6}", 0..3).prop_map(move |names| names.iter().map(rule).collect())
}

proptest! {
    /// The last file with a value counts, and all rules are there in order.
    #[test]
    fn the_last_word_counts(files in prop::collection::vec((setting(), rules()), 0..5)) {
        let all: Vec<String> = files.iter().map(|(setting, rules)| format!("{setting}{rules}")).collect();
        let merged = load(&all.iter().map(String::as_str).collect::<Vec<_>>()).config.unwrap();
        let alone: Vec<Config> = all.iter().map(|text| load(&[text]).config.unwrap()).collect();
        let said = |key: &str| all.iter().rposition(|text| text.starts_with(key));
        let grace = said("grace").map_or(Config::default().grace, |i| alone[i].grace);
        let observe = said("observe").is_some_and(|i| alone[i].observe);
        prop_assert_eq!((merged.grace, merged.observe), (grace, observe));
        let names: Vec<_> = alone.iter().flat_map(|config| &config.agent).map(Rule::name).collect();
        prop_assert_eq!(merged.agent.iter().map(Rule::name).collect::<Vec<_>>(), names);
    }

    /// Whatever the files contain, they are read, or the mistakes have positions in them.
    #[test]
    fn any_texts_are_read_or_told(all in prop::collection::vec("([a-z]{1,5}|grace|agent|name|[ \\[\\]{}=.\"'\\\\\r\n#,0-9\u{1b}ä\u{202e}]){0,24}", 0..4)) {
        let loaded = load(&all.iter().map(String::as_str).collect::<Vec<_>>());
        if let Err(errors) = loaded.config {
            prop_assert!(!errors.to_string().contains(orphand_core::model::text::is_hostile));
            for error in errors.iter() {
                prop_assert!(!error.to_string().contains(orphand_core::model::text::is_hostile));
                let place = &error.content().unwrap().location;
                let number: usize = place.file.to_str().unwrap().strip_suffix(".toml").unwrap().parse().unwrap();
                prop_assert!(place.line <= all[number].matches('\n').count() + 1);
            }
        }
    }
}

//! Several files, and tables of every kind.

use super::super::*;

fn load(all: &[&str]) -> Result<Loaded, Box<Mistake>> {
    let inputs = all.iter().enumerate();
    Loaded::of_inputs(
        inputs.map(|(number, text)| (format!("{number}.toml").into(), (*text).to_owned())).collect(),
    )
}

#[test]
fn later_values_beat_and_rules_are_added() {
    let loaded = load(&[
        "grace = \"1s\"\nobserve = true\n[[agent]]\nname = \"a\"\nprogram = \"a\"\n",
        "agent = [{ name = \"b\", program = \"b\" }]\ngrace = \"2s\"\n",
        "[[agent]]\nprogram = \"c\"\nname = \"c\"\n[[exempt]]\nname = \"d\"\nprogram = \"d\"\n",
    ])
    .unwrap();
    let config = &loaded.config;
    assert_eq!((config.grace, config.observe), (Duration::from_secs(2), true));
    assert_eq!(config.agent.iter().map(|rule| &rule.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    let place = |key: &str, index: usize| loaded.origins.location(key, index).unwrap().to_string();
    assert_eq!(place("grace", 0), "1.toml:2:1");
    assert_eq!(place("observe", 0), "0.toml:2:1");
    assert_eq!([0, 1, 2].map(|i| place("agent", i)), ["0.toml:3:1", "1.toml:1:10", "2.toml:1:1"]);
}

#[test]
fn the_first_mistake_is_told() {
    let rules = "[[exempt]]\nname = \"a\"\nprogram = 1\n[[exempt]]\nbar = 2\nfoo = 3\n";
    for (all, head) in [
        (&["grace = 1\n", "observe = true\nobserve = true\n"][..], "0.toml:1:9: grace: "),
        (&[rules], "0.toml:3:11: exempt.program: "),
        (&[&rules.replace("= 1", "= \"x\"")], "0.toml:5:1: unknown key \"bar\" in [[exempt]]: "),
        (&["[[agent]]\nname = \"b\"\n"], "0.toml:1:1: agent: "),
        (&["", "observe = true\nobserve = true\n"], "1.toml:2:1: duplicate key"),
        (&["work_grace = 1\ngrace = \"2s\"\n", "work_grace = \"1s\""], "0.toml:1:14: work_grace: "),
    ] {
        let told = load(all).unwrap_err().to_string();
        assert!(told.starts_with(head), "{told}");
    }
}

#[test]
fn no_line_is_endless() {
    let long = "x".repeat(5000);
    for text in [[long.as_str(), "= 1"].concat(), ["observe = \"", &long, "\""].concat()] {
        let mistake = load(&[&text]).unwrap_err().to_string();
        assert!(mistake.chars().count() < 600, "{mistake}");
    }
}

/// Where the place of each rule is counted from the beginning of the file, this takes minutes.
#[test]
fn a_large_file_is_read_in_the_time_of_its_size() {
    let rule = |n: usize| format!("[[agent]]\nname = \"a{n}\"\nprogram = \"p{n}\"\n");
    let text: String = (0..24_000).map(rule).collect();
    assert!(load(&[&text]).is_ok());
    let place = load(&[&text, &[&text, "é = 1"].concat()]).unwrap_err().location;
    assert_eq!((place.line, place.column), (Some(72_001), Some(1)));
}

#[test]
fn tables_are_merged_key_by_key() {
    let loaded = load(&[
        "alert = [\"blind\"]\n[sessions]\nkey = \"a:{id}\"\nidle = \"1m\"\n",
        "alert = []\nsessions.idle = \"2m\"\n",
        "sessions = { key = \"b:{id}\" }\n",
    ])
    .unwrap();
    let config = &loaded.config;
    let sessions = config.sessions.as_ref().unwrap();
    assert_eq!((sessions.key.as_str(), sessions.interval()), ("b:{id}", Duration::from_secs(6)));
    assert_eq!(config.alert, [], "lists of values are values");
    let place = |key: &str| loaded.origins.location(key, 0).unwrap().to_string();
    assert_eq!(place("sessions.key"), "2.toml:1:14");
    assert_eq!(place("sessions.idle"), "1.toml:2:10");
    // Each file is right, and both together are not.
    let wrong = load(&["[sessions]\nvariable = \"A\"\n", "[sessions]\nflag = \"--a\"\n"]);
    let told = wrong.unwrap_err().to_string();
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
        assert_eq!(load(&[text]).unwrap_err().to_string(), told);
    }
}

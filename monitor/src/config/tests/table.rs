//! The table of options is correct and complete.

use std::cell::Cell;

use serde::{Deserialize, Deserializer, de};

use super::super::{
    options::{DEFAULT_FILE, Key, Kind, Section, with_origins},
    *,
};
use orphand_core::recognise::Rule;

/// A deserializer that records the names of a type's fields and provides no values.
struct FieldNames<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: de::Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("it is no structure"))
    }

    fn deserialize_struct<V: de::Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.set(fields);
        Err(de::Error::custom("it was only asked"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The keys that serde knows of a type, so that a new field is noticed.
fn fields<'de, T: Deserialize<'de>>() -> Vec<&'static str> {
    let fields = Cell::new(&[][..]);
    let _ = T::deserialize(FieldNames(&fields));
    let mut fields = fields.get().to_vec();
    fields.sort_unstable();
    fields
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// The fields of a section's type. A new section needs a line here.
fn fields_of(section: &Section) -> Vec<&'static str> {
    match section.name.as_str() {
        "exempt" | "agent" | "program" => fields::<Rule>(),
        "hook" => fields::<Hook>(),
        "containers" => fields::<Engines>(),
        "sessions" => fields::<Sessions>(),
        other => panic!("which type is [{other}] read as?"),
    }
}

#[test]
fn it_has_the_keys_that_are_read_and_no_others() {
    assert_eq!(sorted(options::names().into_iter()), fields::<Config>());
    for section in options::tables() {
        assert_eq!(
            sorted(section.keys.iter().map(|key| key.name.as_str())),
            fields_of(section),
            "{}",
            section.name
        );
    }
}

#[test]
fn it_has_the_defaults_that_hold() {
    let defaults: toml::Table = toml::Table::try_from(Config::default()).unwrap();
    let top = options::top();
    for key in &top.keys {
        let told = key
            .default
            .as_ref()
            .map(|text| toml::from_str::<toml::Table>(&format!("x = {text}")).unwrap()["x"].clone());
        assert_eq!(told.as_ref(), defaults.get(&key.name), "{}", key.name);
    }
}

#[test]
fn every_row_is_filled_in_and_every_example_is_right() {
    for section in options::sections() {
        assert!(section.about.ends_with('.'), "{}", section.name);
        if section.kind != Kind::Top {
            parsed(&section.example()).unwrap();
        }
        for key in &section.keys {
            let Key { name, value, about, .. } = key;
            let sentences = about.matches(". ").count() + 1;
            assert!(!value.is_empty() && about.ends_with('.') && (1..=4).contains(&sentences), "{name}");
            if section.kind == Kind::Top {
                let read = parsed(&key.example());
                assert_ne!(read.unwrap(), Config::default(), "{name}: its example is its default");
                continue;
            }
            // With the other keys that the table needs: those of its example, or fewer.
            let example: String = section
                .example
                .lines()
                .filter(|line| !line.starts_with(name.as_str()))
                .flat_map(|line| [line, "\n"])
                .collect();
            let others = [
                "",
                "name = \"x\"\n",
                "program = \"x\"\n",
                "name = \"x\"\nprogram = \"x\"\n",
                "name = \"x\"\nkind = \"launcher\"\n",
                "program = \"x\"\nkind = \"launcher\"\n",
                "name = \"x\"\nprogram = \"x\"\nkind = \"launcher\"\n",
                &example,
            ];
            let fits =
                |others: &&str| parsed(&format!("{}\n{others}{}", section.header(), key.example())).is_ok();
            assert_eq!(others.iter().any(fits), section.takes(key), "{name}");
        }
    }
}

#[test]
fn a_key_of_another_table_is_sent_where_it_may_be() {
    for (line, header) in [
        ("idle_duplicates = \"4h\"", "[[agent]]"),
        ("reap = true", "[[agent]]"),
        ("kind = \"server\"", "[[program]]"),
        ("user = \"alice\"", "[[hook]]"),
        ("path = \"/x\"", "[[hook]]"),
        ("unit = \"a.service\"", "[[exempt]]"),
    ] {
        let told = parsed(line).unwrap_err().to_string();
        assert!(told.contains(&format!("it is a key of {header}: write it below")), "{told}");
    }
}

fn parsed(text: &str) -> Result<Config, Box<Mistake>> {
    Config::parse(text, Path::new("x.toml"))
}

/// The commented lines of the default file that `counts` accepts, without the `#`.
fn uncommented(counts: impl Fn(&str) -> bool) -> String {
    let lines = DEFAULT_FILE.lines().map(|line| match line.strip_prefix('#') {
        Some(rest) if counts(rest) => rest,
        _ => line,
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn the_default_file_says_nothing_and_its_lines_are_the_defaults() {
    assert_eq!(parsed(DEFAULT_FILE).unwrap(), Config::default());
    let text = uncommented(|rest| !rest.is_empty() && !rest.starts_with(' '));
    assert_eq!(parsed(&text).unwrap(), Config::default());
    let keys = toml::from_str::<toml::Table>(&text).unwrap().len();
    assert_eq!(keys, options::top().keys.iter().filter(|key| key.default.is_some()).count());
}

#[test]
fn its_examples_can_be_taken_in_too() {
    let text = uncommented(|rest| rest.starts_with("     ") || !rest.is_empty() && !rest.starts_with(' '));
    let config = parsed(&text).unwrap();
    let table = toml::Table::try_from(&config).unwrap();
    assert_eq!(sorted(table.keys().map(String::as_str)), fields::<Config>());
}

#[test]
fn where_each_value_came_from() {
    let text = "grace = \"1s\"\n[[agent]]\nname = \"a\"\nunit = \"a.service\"\n";
    let loaded = Loaded::of_inputs(vec![("x.toml".into(), text.to_owned())]).unwrap();
    let config = loaded.config;
    let text = with_origins(&config, &loaded.origins);
    assert_eq!(parsed(&text).unwrap(), config);
    assert!(
        text.starts_with(
            "observe = false  # default\nfound = \"ask\"  # default\ngrace = \"1s\"  # x.toml:1\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("\n[[agent]]  # x.toml:2\nname = \"a\"\nunit = \"a.service\"\n"), "{text}");
}

//! Reads a file of settings of an agent, and keeps of it only the servers that it declares: see
//! [`Declarations`]. What is of another kind than expected is passed over.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::declared::{Declarations, MOST};

impl<'de> Deserialize<'de> for Declarations {
    fn deserialize<D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        let mut found = Self::default();
        Walk { place: Place::File, found: &mut found }.deserialize(file)?;
        Ok(found)
    }
}

/// A part of a file.
#[derive(Clone, Debug)]
enum Place {
    File,
    /// Claude Code: the projects, each of which may have servers of its own.
    Projects,
    Project,
    /// A list of servers.
    Servers,
    /// The server with this name.
    Server(String),
    /// Of no interest.
    Other,
}

impl Place {
    /// What is below this key.
    fn below(&self, key: &str) -> Self {
        match (self, key) {
            // `mcpServers`: Claude Code and Desktop, Cursor, Windsurf, Gemini, Copilot, and many others. `servers`: VS
            // Code. `mcp_servers`: Codex. `mcp`: Opencode. `context_servers`: Zed.
            (Self::File, "mcpServers" | "servers" | "mcp_servers" | "mcp" | "context_servers")
            | (Self::Project, "mcpServers") => Self::Servers,
            (Self::File, "projects") => Self::Projects,
            (Self::Projects, _) => Self::Project,
            (Self::Servers, name) => Self::Server(name.to_owned()),
            _ => Self::Other,
        }
    }
}

/// Reads a part of a file, and adds the servers in it to `found`.
struct Walk<'a> {
    place: Place,
    found: &'a mut Declarations,
}

/// Passes over what is neither text, a list, nor a table.
macro_rules! pass_over_the_rest {
    () => {
        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("settings")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, part: D) -> Result<(), D::Error> {
        match self.place {
            Place::Other => IgnoredAny::deserialize(part).map(|_| ()),
            _ => part.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    pass_over_the_rest!();

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<(), A::Error> {
        let Self { place, found } = self;
        let (mut command, mut args) = (Words::Other, Words::default());
        while let Some(key) = table.next_key::<String>()? {
            match (&place, key.as_str()) {
                (Place::Server(_), "command") => command = table.next_value()?,
                (Place::Server(_), "args") => args = table.next_value()?,
                _ => table.next_value_seed(Walk { place: place.below(&key), found })?,
            }
        }
        if let (Place::Server(name), Some(words)) = (place, command_line(command, args)) {
            found.add(&name, words);
        }
        Ok(())
    }
}

/// The words of an entry's command line; `None` if it has none.
fn command_line(command: Words, args: Words) -> Option<Vec<String>> {
    match (command, args) {
        (Words::One(command), Words::Many(args)) => Some(std::iter::once(command).chain(args).collect()),
        (Words::Many(words), _) => Some(words),
        _ => None,
    }
}

/// A command, or arguments.
#[derive(Clone, Debug)]
enum Words {
    One(String),
    Many(Vec<String>),
    /// Too many, or not only text.
    Other,
}

impl Default for Words {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(part: D) -> Result<Self, D::Error> {
        part.deserialize_any(ReadWords).map(|words| words.unwrap_or(Self::Other))
    }
}

struct ReadWords;

impl<'de> Visitor<'de> for ReadWords {
    type Value = Option<Words>;

    pass_over_the_rest!();

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok((text.len() <= MOST).then(|| Words::One(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut words, mut bytes) = (Some(Vec::new()), 0);
        while let Some(word) = list.next_element()? {
            let Words::One(word) = word else {
                words = None;
                continue;
            };
            bytes += size_of::<String>() + word.len();
            if bytes > MOST {
                words = None;
            }
            if let Some(words) = &mut words {
                words.push(word);
            }
        }
        Ok(words.map(Words::Many))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
        while table.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

//! A mistake in a configuration: one line that says where, what, and what to do.
//!
//! Invariant: a message contains no line feed and no terminal control character, whatever is in the file.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer};

use orphand_core::model::text::sanitise;

/// A mistake, or a note about what is probably one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistake {
    #[serde(flatten)]
    pub location: Location,
    /// The key, for example `grace` or `agent.program`; absent for a syntax error and an unknown key.
    pub key: Option<String>,
    pub message: String,
    pub near: Option<&'static str>,
    pub example: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// The line, from 1; absent where the file, or directory, as a whole is meant.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
}

/// A path need not be UTF-8.
fn lossy<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&path.to_string_lossy())
}

impl Mistake {
    pub fn new(location: Location, key: Option<&str>, message: String) -> Box<Self> {
        Box::new(Self { location, key: key.map(str::to_owned), message, near: None, example: None })
    }

    /// Why a file cannot be used; the message names it.
    pub(super) fn of_file(file: &Path, message: String) -> Box<Self> {
        Self::new(Location { file: file.to_owned(), line: None, column: None }, None, message)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.file))?;
        [self.line, self.column].into_iter().flatten().try_for_each(|number| write!(f, ":{number}"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.location.line.is_some() {
            write!(f, "{}: ", self.location)?;
        }
        if let Some(key) = &self.key {
            write!(f, "{}: ", sanitise(key))?;
        }
        write!(f, "{}", sanitise(&self.message))?;
        match &self.example {
            Some(example) if self.message.ends_with('?') => write!(f, " For example: {example}"),
            Some(example) => write!(f, "; for example: {example}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Mistake {}

pub fn shown(path: &Path) -> String {
    sanitise(&path.to_string_lossy()).into_owned()
}

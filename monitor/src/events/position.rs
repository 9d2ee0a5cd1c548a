//! Where a line begins in the files.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A place in the files: the number of a file, and bytes from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Position {
    pub file: u64,
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.file, self.offset)
    }
}

impl From<Position> for String {
    fn from(at: Position) -> Self {
        at.to_string()
    }
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('.').and_then(|(file, offset)| Some((file.parse().ok()?, offset.parse().ok()?)));
        let (file, offset) = parts.ok_or_else(|| format!("{text:?} is no position of events"))?;
        Ok(Self { file, offset })
    }
}

impl TryFrom<String> for Position {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

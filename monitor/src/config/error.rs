//! Mistakes in a configuration. Each is one line that says where, what, and what to do.
//!
//! Invariant: a message contains no line feed and no terminal control character, whatever is in the file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer};

use crate::os::trust::Distrust;
use orphand_core::model::text::sanitise;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file or directory cannot be read.
    #[error("cannot read the configuration {}: {error}", shown(path))]
    Read {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// Other users could change the file, and orphand has rights that they do not have.
    #[error("cannot trust the configuration {}: {}", shown(path), sanitise(&source.to_string()))]
    Distrust {
        /// The file, or the directory of further files.
        path: PathBuf,
        source: Distrust,
    },
    #[error("{0}")]
    Content(Box<Content>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Content {
    #[serde(flatten)]
    pub location: Location,
    /// The key, for example `grace` or `agent.program`; absent for a syntax error and an unknown key.
    pub key: Option<String>,
    pub message: String,
    /// The known key that was probably meant.
    pub near: Option<&'static str>,
    pub example: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// A path need not be UTF-8.
fn lossy<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&path.to_string_lossy())
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", shown(&self.file), self.line, self.column)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.location)?;
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

impl ConfigError {
    /// The file or directory with the mistake.
    pub fn path(&self) -> &Path {
        match self {
            Self::Read { path, .. } | Self::Distrust { path, .. } => path,
            Self::Content(content) => &content.location.file,
        }
    }

    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Content(content) => Some(content),
            _ => None,
        }
    }
}

impl From<Content> for ConfigError {
    fn from(content: Content) -> Self {
        Self::Content(Box::new(content))
    }
}

/// All mistakes of a configuration, at least one, in the order of the files and lines.
///
/// Its `Display` is one line with the first mistake; `orphand config check` lists all.
#[derive(Debug)]
pub struct ConfigErrors {
    all: Vec<ConfigError>,
    /// The path that was given, if it is not the default.
    asked: Option<PathBuf>,
}

impl ConfigErrors {
    /// `None` if there are no mistakes. `asked` is the path that was given.
    pub(super) fn new(all: Vec<ConfigError>, asked: Option<&Path>) -> Option<Self> {
        (!all.is_empty()).then(|| Self { all, asked: asked.map(Path::to_owned) })
    }

    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.all.iter()
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, more)) = self.all.split_first() else { return Ok(()) };
        write!(f, "{first}")?;
        if more.is_empty() {
            return Ok(());
        }
        let asked = self.asked.as_deref().map(|path| format!(" {}", shown(path))).unwrap_or_default();
        write!(f, " (and {} more: `orphand config check{asked}` lists all)", more.len())
    }
}

/// A path as text on one line.
pub fn shown(path: &Path) -> String {
    sanitise(&path.to_string_lossy()).into_owned()
}

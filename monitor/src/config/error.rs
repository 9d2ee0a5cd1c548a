//! Mistakes in a configuration. Each is one line that says where, what, and what to do.
//!
//! Invariant: a message contains no line feed and no terminal control character, whatever is in the file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::os::trust::Distrust;
use orphand_core::model::text::sanitise;

/// A mistake.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file or directory cannot be read.
    #[error("cannot read the configuration {}: {error}", shown(path))]
    Read {
        /// The path.
        path: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
    /// Other users could change the file, and orphand has rights that they do not have.
    #[error("cannot trust the configuration {}: {}", shown(path), sanitise(&source.to_string()))]
    Distrust {
        /// The file, or the directory of further files.
        path: PathBuf,
        /// The reason.
        source: Distrust,
    },
    /// The content is wrong.
    #[error("{0}")]
    Content(Box<Content>),
}

/// A mistake in the content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Where it is.
    pub location: Location,
    /// The key, for example `grace` or `agent.program`; absent for a syntax error and an unknown key.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// The known key that was probably meant.
    pub near: Option<&'static str>,
    /// A correct line as an example.
    pub example: Option<String>,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
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

    /// The mistake, if it is in the content of a file.
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
    first: ConfigError,
    more: Vec<ConfigError>,
    /// The path that was given, if it is not the default.
    asked: Option<PathBuf>,
}

impl ConfigErrors {
    /// `None` if there are no mistakes. `asked` is the path that was given.
    pub(super) fn new(all: Vec<ConfigError>, asked: Option<&Path>) -> Option<Self> {
        let mut all = all.into_iter();
        let first = all.next()?;
        Some(Self { first, more: all.collect(), asked: asked.map(Path::to_owned) })
    }

    /// All mistakes.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.more.is_empty() {
            return Ok(());
        }
        let asked = self.asked.as_deref().map(|path| format!(" {}", shown(path))).unwrap_or_default();
        write!(f, " (and {} more: `orphand config check{asked}` lists all)", self.more.len())
    }
}

/// A path as text on one line.
pub fn shown(path: &Path) -> String {
    sanitise(&path.to_string_lossy()).into_owned()
}

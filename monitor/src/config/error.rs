//! What is wrong with a configuration, each mistake in one line that says where, what, and what to do.
//!
//! Invariant: what is shown has no line feed nor anything else that a terminal obeys, whatever is in the file.

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
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The file is no text.
    #[error("cannot read the configuration {}: it is not UTF-8 text", shown(path))]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// It is a device, a pipe or the like.
    #[error("cannot read the configuration {}: it is no regular file", shown(path))]
    NoFile {
        /// What is there.
        path: PathBuf,
    },
    /// Nobody writes as much.
    #[error(
        "cannot read the configuration {}: it is larger than {limit} bytes, more than any configuration needs",
        shown(path)
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// What would be read, in bytes.
        limit: u64,
    },
    /// Somebody else could change it, and we have rights that he has not.
    #[error("will not act on the configuration {}: {}", shown(path), sanitise(&source.to_string()))]
    Distrust {
        /// The file, or the directory of further files.
        path: PathBuf,
        /// Why.
        source: Distrust,
    },
    /// The file says something that cannot be.
    #[error("{0}")]
    Content(Box<Content>),
}

/// What a place in a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The place.
    pub place: Place,
    /// The key it is about, `grace` or `agent.program`; none if it is the text itself, or a key that does not exist.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// The known key that was probably meant.
    pub near: Option<&'static str>,
    /// A line that would be right.
    pub example: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", shown(&self.file), self.line, self.column)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
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
    /// The file or directory that it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Read { path, .. }
            | Self::Encoding { path }
            | Self::NoFile { path }
            | Self::Size { path, .. }
            | Self::Distrust { path, .. } => path,
            Self::Content(content) => &content.place.file,
        }
    }

    /// The place and what it says, if it is about the content.
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

/// All mistakes of a configuration, at least one: in the order of the files, then of their lines.
///
/// It shows as one line, whose rest `orphand config check` tells.
#[derive(Debug)]
pub struct ConfigErrors {
    first: ConfigError,
    more: Vec<ConfigError>,
    /// What was asked for, if it was not the default.
    asked: Option<PathBuf>,
}

impl ConfigErrors {
    /// None without a mistake. `asked` is the file that was named.
    pub(super) fn new(all: Vec<ConfigError>, asked: Option<&Path>) -> Option<Self> {
        let mut all = all.into_iter();
        let first = all.next()?;
        Some(Self { first, more: all.collect(), asked: asked.map(Path::to_owned) })
    }

    /// Each of them.
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
        write!(f, " (and {} more: `orphand config check{asked}` tells all)", self.more.len())
    }
}

/// A path on one line.
pub fn shown(path: &Path) -> String {
    sanitise(&path.to_string_lossy()).into_owned()
}

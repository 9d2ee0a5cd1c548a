//! What came of reading the configuration: what it says, from which files, and what is wrong or odd.

use std::path::{Path, PathBuf};

use super::{
    Config, ConfigError, ConfigErrors, Content, check,
    files::{self, Input},
    notes,
    options::SECTIONS,
    text::{Origins, Texts},
};

/// The configuration, and what is to be told about it.
#[derive(Debug)]
pub struct Loaded {
    /// The files that were read, in their order, those with mistakes included. Later ones beat earlier ones.
    pub files: Vec<PathBuf>,
    /// What they say together, or all that is wrong.
    pub config: Result<Config, ConfigErrors>,
    /// What is allowed and hardly meant. Empty if something is wrong.
    pub notes: Vec<Content>,
    /// Where each value came from. Empty if something is wrong.
    pub origins: Origins,
}

impl Loaded {
    /// As [`Config::load`] reads.
    pub fn read(path: Option<&Path>) -> Self {
        Self::of_inputs(files::inputs(path, files::guard()), path)
    }

    /// Reads `text`, which came from `path`.
    pub(super) fn of_text(text: &str, path: &Path) -> Self {
        let input = Input { path: path.into(), text: Some(text.to_owned()), errors: Vec::new() };
        Self::of_inputs(vec![input], Some(path))
    }

    pub(super) fn of_inputs(inputs: Vec<Input>, asked: Option<&Path>) -> Self {
        let mut texts = Texts::default();
        let mut order = Vec::new();
        let mut errors = Vec::new();
        for Input { path, text, errors: wrong } in inputs {
            order.push(path.clone());
            errors.extend(wrong);
            if let Some(text) = text {
                texts.push(path, text);
            }
        }
        let files = texts.paths().map(Path::to_owned).collect();
        let read = check::read::<Config>(&texts, SECTIONS).map_err(|wrong| {
            errors.extend(wrong.into_iter().map(ConfigError::from));
        });
        // A stable sort: within a file what is wrong with it as a file comes first, then line by line.
        errors.sort_by_key(|error| order.iter().position(|path| path == error.path()));
        match (ConfigErrors::new(errors, asked), read) {
            (Some(errors), _) => {
                Self { files, config: Err(errors), notes: Vec::new(), origins: Origins::default() }
            }
            (None, read) => {
                // Without a mistake it was read.
                let (config, at) = read.unwrap_or_default();
                let origins = Origins { texts, at };
                let mut notes = notes::notes(&config, &origins);
                notes.sort_by_key(|note| {
                    (order.iter().position(|path| *path == note.place.file), note.place.line)
                });
                Self { files, notes, config: Ok(config), origins }
            }
        }
    }
}

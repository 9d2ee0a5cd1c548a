//! The result of reading the configuration: its values, its files, mistakes and notes.

use std::path::{Path, PathBuf};

use crate::os::users;

use super::{
    Config, ConfigError, ConfigErrors, Content,
    check::{self, Origins},
    files::{self, Input, Text},
    notes,
};

/// The result of reading the configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The files that were read, in order, including those with mistakes. Later ones override earlier ones.
    pub files: Vec<PathBuf>,
    /// The merged configuration, or all mistakes.
    pub config: Result<Config, ConfigErrors>,
    /// Values that are allowed but probably not intended. Empty if there are mistakes.
    pub notes: Vec<Content>,
    /// Where each value comes from. Empty if there are mistakes.
    pub origins: Origins,
}

impl Loaded {
    /// Reads the same files as [`Config::load`].
    pub fn read(path: Option<&Path>) -> Self {
        let loaded = Self::of_inputs(files::inputs(path, files::guard()), path);
        loaded.with_users(path, |name| users::user(name).ok().flatten().map(|user| user.uid))
    }

    /// The same with numbers in place of the names of users. An exemption of nobody would exempt nothing.
    fn with_users(mut self, asked: Option<&Path>, number: impl Fn(&str) -> Option<u32>) -> Self {
        let Ok(config) = &mut self.config else { return self };
        let found = config.exempt.iter_mut().enumerate().find_map(|(index, rule)| {
            let name = rule.resolve_user(&number).err()?;
            let message = format!("there is no user \"{name}\" on this host");
            let location = self.origins.location("exempt", index)?;
            let key = Some("exempt.user".to_owned());
            Some(Content { location, key, message, near: None, example: None })
        });
        if let Some(errors) = found.and_then(|found| ConfigErrors::new(vec![found.into()], asked)) {
            self.config = Err(errors);
        }
        self
    }

    /// Reads `text` as the content of `path`.
    pub(super) fn of_text(text: &str, path: &Path) -> Self {
        let input = Input { path: path.into(), text: Some(text.to_owned()), errors: Vec::new() };
        Self::of_inputs(vec![input], Some(path))
    }

    pub(super) fn of_inputs(inputs: Vec<Input>, asked: Option<&Path>) -> Self {
        let (mut texts, mut order, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for Input { path, text, errors: wrong } in inputs {
            order.push(path.clone());
            errors.extend(wrong);
            texts.extend(text.map(|text| Text { path, text }));
        }
        let read = check::read::<Config>(&texts).map_err(|wrong| {
            errors.extend(wrong.into_iter().map(ConfigError::from));
        });
        let files = texts.into_iter().map(|file| file.path).collect();
        // The sort is stable: mistakes of a file itself stay before those of its lines.
        errors.sort_by_key(|error| order.iter().position(|path| path == error.path()));
        match (ConfigErrors::new(errors, asked), read) {
            (Some(errors), _) => {
                Self { files, config: Err(errors), notes: Vec::new(), origins: Origins::default() }
            }
            (None, read) => {
                // Without mistakes there is a configuration.
                let (config, origins) = read.unwrap_or_default();
                let mut notes = notes::notes(&config, &origins);
                notes.sort_by_key(|note| {
                    (order.iter().position(|path| *path == note.location.file), note.location.line)
                });
                Self { files, notes, config: Ok(config), origins }
            }
        }
    }
}

//! The result of reading the configuration: its values, its files, mistakes and notes.

use std::path::{Path, PathBuf};

use crate::os::users;

use super::{
    Config, ConfigErrors, Mistake,
    check::{self, Origins},
    files::{self, Input},
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
    pub notes: Vec<Mistake>,
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
            Some(Mistake::new(location, Some("exempt.user"), message))
        });
        if let Some(errors) = found.and_then(|found| ConfigErrors::new(vec![found], asked)) {
            self.config = Err(errors);
        }
        self
    }

    /// Reads `text` as the content of `path`.
    pub(super) fn of_text(text: &str, path: &Path) -> Self {
        let input = Input { path: path.into(), text: Some(text.to_owned()), errors: Vec::new() };
        Self::of_inputs(vec![input], Some(path))
    }

    pub(super) fn of_inputs(mut inputs: Vec<Input>, asked: Option<&Path>) -> Self {
        let mut errors: Vec<_> =
            inputs.iter_mut().flat_map(|input| std::mem::take(&mut input.errors)).collect();
        let (config, origins) = match check::read::<Config>(&inputs) {
            Ok(read) => read,
            Err(mistakes) => {
                errors.extend(mistakes);
                <(Config, Origins)>::default()
            }
        };
        let place = |mistake: &Mistake| {
            (inputs.iter().position(|input| input.path == mistake.location.file), mistake.location.line)
        };
        // Mistakes of a file itself come before those of its lines; the rest has its order.
        errors.sort_by_key(|error| (place(error).0, error.location.line.is_some()));
        let files =
            inputs.iter().filter(|input| input.text.is_some()).map(|input| input.path.clone()).collect();
        if let Some(errors) = ConfigErrors::new(errors, asked) {
            return Self { files, config: Err(errors), notes: Vec::new(), origins: Origins::default() };
        }
        let mut notes = notes::notes(&config, &origins);
        notes.sort_by_key(place);
        Self { files, notes, config: Ok(config), origins }
    }
}

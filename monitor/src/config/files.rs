//! Which files the configuration is made of, and whether they may be believed. The only part of it that reads files.
//!
//! Invariant: with rights that others have not, no file is taken that others could change; nothing blocks and nothing large is
//! read, whatever lies where a file is looked for.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno, process::geteuid, thread::capabilities};

use super::{ConfigError, DEFAULT_PATH};
use crate::os::trust::{self, Distrust};

/// More than anybody writes by hand, and quickly read, in bytes.
const LIMIT: u64 = 1 << 20;

/// The directory of further files, beside the file itself.
const FURTHER: &str = "conf.d";

/// A file, and what reading it gave.
#[derive(Debug)]
pub(super) struct Input {
    /// The file, or the directory of further files if that is what is wrong.
    pub path: PathBuf,
    /// What it says, unless it cannot be read.
    pub text: Option<String>,
    /// What is wrong with it as a file.
    pub errors: Vec<ConfigError>,
}

/// The user beside root who may own the files: ours, if we have rights that others have not. Who has none may read what he
/// likes.
pub(super) fn guard() -> Option<u32> {
    let user = geteuid();
    // In doubt we have some.
    let capable = !capabilities(None).is_ok_and(|sets| sets.effective.is_empty());
    (user.is_root() || capable).then(|| user.as_raw())
}

/// The files in their order. `asked` must be there, the default need not; `guard` is as [`guard`] gives it.
pub(super) fn inputs(asked: Option<&Path>, guard: Option<u32>) -> Vec<Input> {
    let main = asked.unwrap_or(Path::new(DEFAULT_PATH));
    let mut reader = Reader { guard, told: BTreeSet::new(), inputs: Vec::new() };
    if asked.is_some() || is_there(main) {
        reader.file(main);
    }
    let further = main.parent().unwrap_or(Path::new("")).join(FURTHER);
    if is_there(&further) {
        reader.directory(&further);
    }
    reader.inputs
}

/// Whether there is something, be it a link to nothing. In doubt there is: reading it will say why not.
fn is_there(path: &Path) -> bool {
    let missing = |error: io::Error| {
        // The way to it ends at a file that is no directory: `--config` may name anything.
        [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind())
    };
    !fs::symlink_metadata(path).is_err_and(missing)
}

struct Reader {
    guard: Option<u32>,
    /// What was distrusted already: a directory above all files is told once.
    told: BTreeSet<String>,
    inputs: Vec<Input>,
}

impl Reader {
    fn file(&mut self, path: &Path) {
        // Whoever asks for it wants no configuration at all.
        if path == Path::new("/dev/null") {
            self.inputs.push(Input { path: path.into(), text: Some(String::new()), errors: Vec::new() });
            return;
        }
        let mut errors = self.distrust(path, trust::check);
        let text = read(path).map_err(|error| errors.push(error)).ok();
        // What cannot be looked at cannot be read either: once is enough.
        if text.is_none() && errors.len() > 1 {
            errors.retain(|error| {
                !matches!(
                    error,
                    ConfigError::Distrust { source: Distrust::Unseen { .. } | Distrust::NoFile { .. }, .. }
                )
            });
        }
        self.inputs.push(Input { path: path.into(), text, errors });
    }

    fn directory(&mut self, path: &Path) {
        let mut errors = self.distrust(path, trust::check_directory);
        let names = match names(path) {
            Ok(names) => names,
            Err(error) => {
                errors.clear();
                errors.push(ConfigError::Read { path: path.into(), error });
                Vec::new()
            }
        };
        if !errors.is_empty() {
            self.inputs.push(Input { path: path.into(), text: None, errors });
        }
        for name in names {
            self.file(&path.join(name));
        }
    }

    fn distrust(&mut self, path: &Path, check: fn(&Path, u32) -> Result<(), Distrust>) -> Vec<ConfigError> {
        let found = self.guard.and_then(|own| check(path, own).err());
        let new = found.filter(|source| self.told.insert(source.to_string()));
        new.map(|source| ConfigError::Distrust { path: path.into(), source }).into_iter().collect()
    }
}

/// The names of the files that count, in byte order: what editors and packagers leave beside them does not.
fn names(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if name.as_bytes().ends_with(b".toml") && !name.as_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    Ok(names.into_iter().map(PathBuf::from).collect())
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |error| ConfigError::Read { path: path.into(), error };
    // A pipe that nobody writes to would keep us waiting.
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags()).open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(failed(Errno::ISDIR.into()));
    }
    if !kind.is_file() {
        return Err(ConfigError::NoFile { path: path.into() });
    }
    let mut bytes = Vec::new();
    File::take(file, LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LIMIT {
        return Err(ConfigError::Size { path: path.into(), limit: LIMIT });
    }
    let text = String::from_utf8(bytes).map_err(|_| ConfigError::Encoding { path: path.into() })?;
    // Some editors begin with a byte order mark. It is no part of the text: columns are counted without it.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn flags() -> i32 {
    i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default()
}

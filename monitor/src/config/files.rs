//! Finds and reads the files of the configuration, and checks whether they can be trusted.
//!
//! Invariant: if orphand has rights that others do not have, it uses no file that others could change. No
//! path can make it block or read large amounts.

use std::{
    fmt::Display,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use rustix::{process::geteuid, thread::capabilities};

use super::{
    DEFAULT_PATH,
    error::{Mistake, shown},
};
use crate::os::{
    text_file,
    trust::{self, Distrust},
};

const FURTHER: &str = "conf.d";

pub(super) type Input = (PathBuf, String);

/// Who, besides root, may own the files: the own user, if the process has rights that others do not have; else anybody may.
pub(super) fn guard() -> Option<u32> {
    let user = geteuid();
    // If this cannot be found out, assume that there are rights.
    let capable = !capabilities(None).is_ok_and(|sets| sets.effective.is_empty());
    (user.is_root() || capable).then(|| user.as_raw())
}

/// The files in order. `asked` must exist, the default file need not. `guard` is the result of [`guard`].
pub(super) fn inputs(asked: Option<&Path>, guard: Option<u32>) -> Result<Vec<Input>, Box<Mistake>> {
    let main = asked.unwrap_or(Path::new(DEFAULT_PATH));
    if asked.is_some() && !is_there(main) {
        let advice = "`orphand config default` prints one to begin with";
        return Err(Mistake::of_file(main, format!("there is no configuration {}: {advice}", shown(main))));
    }
    let mut inputs = Vec::new();
    if asked.is_some() || is_there(main) {
        inputs.push(input(main, guard)?);
    }
    let further = main.parent().unwrap_or(Path::new("")).join(FURTHER);
    if is_there(&further) {
        let names = names(&further).map_err(|error| unusable("read", &further, &error))?;
        trusted(&further, guard, trust::check_directory)?;
        for name in names {
            inputs.push(input(&further.join(name), guard)?);
        }
    }
    Ok(inputs)
}

/// Whether the path exists, even as a dangling link. If this is not known, reading reports the reason.
fn is_there(path: &Path) -> bool {
    let missing = |error: io::Error| {
        // A parent of the path is not a directory: `--config` may have any value.
        [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind())
    };
    !fs::symlink_metadata(path).is_err_and(missing)
}

fn input(path: &Path, guard: Option<u32>) -> Result<Input, Box<Mistake>> {
    // `/dev/null` means no configuration.
    if path == Path::new("/dev/null") {
        return Ok((path.into(), String::new()));
    }
    let text = text_file(path).map_err(|error| unusable("read", path, &error))?;
    // Some editors write a byte order mark. It is skipped, and columns are counted without it.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    trusted(path, guard, trust::check)?;
    Ok((path.into(), text))
}

fn trusted(
    path: &Path,
    guard: Option<u32>,
    check: fn(&Path, u32) -> Result<(), Distrust>,
) -> Result<(), Box<Mistake>> {
    let checked = guard.map_or(Ok(()), |own| check(path, own));
    checked.map_err(|why| unusable("trust", path, &why))
}

fn unusable(verb: &str, path: &Path, why: &impl Display) -> Box<Mistake> {
    Mistake::of_file(path, format!("cannot {verb} the configuration {}: {why}", shown(path)))
}

/// The names of the configuration files in byte order. Backups of editors and packagers are skipped.
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

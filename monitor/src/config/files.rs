//! Finds and reads the files of the configuration, and checks whether they can be trusted.
//!
//! Invariant: if orphand has rights that others do not have, it uses no file that others could change. No
//! path can make it block or read large amounts.

use std::{
    fmt::Display,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno, process::geteuid, thread::capabilities};

use super::{
    DEFAULT_PATH,
    error::{Mistake, shown},
};
use crate::os::trust::{self, Distrust};

const LIMIT: u64 = 1 << 20;

/// The directory of further files, next to the main file.
const FURTHER: &str = "conf.d";

/// A file and its content.
pub(super) type Input = (PathBuf, String);

/// The user who, besides root, may own the files: the own user, if the process has rights that others do not
/// have. `None` if it has no such rights; then any readable file is accepted.
pub(super) fn guard() -> Option<u32> {
    let user = geteuid();
    // If this cannot be found out, assume that there are rights.
    let capable = !capabilities(None).is_ok_and(|sets| sets.effective.is_empty());
    (user.is_root() || capable).then(|| user.as_raw())
}

/// The files in order. `asked` must exist, the default file need not. `guard` is the result of [`guard`].
pub(super) fn inputs(asked: Option<&Path>, guard: Option<u32>) -> Result<Vec<Input>, Box<Mistake>> {
    let main = asked.unwrap_or(Path::new(DEFAULT_PATH));
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
    let text = read(path).map_err(|error| unusable("read", path, &error))?;
    trusted(path, guard, trust::check)?;
    Ok((path.into(), text))
}

/// Refuses what other users could change, if orphand has rights that they do not have.
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

fn read(path: &Path) -> io::Result<String> {
    // A pipe without a writer would block.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !kind.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::take(file, LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        let why = format!("it is larger than {LIMIT} bytes, more than any configuration needs");
        return Err(io::Error::other(why));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))?;
    // Some editors write a byte order mark. It is skipped, and columns are counted without it.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

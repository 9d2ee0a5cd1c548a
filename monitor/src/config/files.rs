//! Finds and reads the files of the configuration, and checks whether they can be trusted.
//!
//! Invariant: if orphand has rights that others do not have, it uses no file that others could change. No
//! path can make it block or read large amounts.

use std::{
    collections::BTreeSet,
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

#[derive(Debug)]
pub(super) struct Input {
    /// The file, or the directory of further files if that has the mistake.
    pub path: PathBuf,
    /// Its content; absent if it cannot be read.
    pub text: Option<String>,
    pub errors: Vec<Mistake>,
}

/// The user who, besides root, may own the files: the own user, if the process has rights that others do not
/// have. `None` if it has no such rights; then any readable file is accepted.
pub(super) fn guard() -> Option<u32> {
    let user = geteuid();
    // If this cannot be found out, assume that there are rights.
    let capable = !capabilities(None).is_ok_and(|sets| sets.effective.is_empty());
    (user.is_root() || capable).then(|| user.as_raw())
}

/// The files in order. `asked` must exist, the default file need not. `guard` is the result of [`guard`].
pub(super) fn inputs(asked: Option<&Path>, guard: Option<u32>) -> Vec<Input> {
    let main = asked.unwrap_or(Path::new(DEFAULT_PATH));
    let mut reader = Reader { guard, reported: BTreeSet::new(), inputs: Vec::new() };
    if asked.is_some() || is_there(main) {
        reader.file(main);
    }
    let further = main.parent().unwrap_or(Path::new("")).join(FURTHER);
    if is_there(&further) {
        reader.directory(&further);
    }
    reader.inputs
}

/// Whether the path exists, even as a dangling link. If this is not known, reading reports the reason.
fn is_there(path: &Path) -> bool {
    let missing = |error: io::Error| {
        // A parent of the path is not a directory: `--config` may have any value.
        [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind())
    };
    !fs::symlink_metadata(path).is_err_and(missing)
}

struct Reader {
    guard: Option<u32>,
    /// Problems already reported: a directory above several files is reported once.
    reported: BTreeSet<String>,
    inputs: Vec<Input>,
}

impl Reader {
    fn file(&mut self, path: &Path) {
        // `/dev/null` means no configuration.
        if path == Path::new("/dev/null") {
            self.inputs.push(Input { path: path.into(), text: Some(String::new()), errors: Vec::new() });
            return;
        }
        let distrust = self.distrust(path, trust::check);
        let (text, unread) = match read(path) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(unreadable(path, &error))),
        };
        // A file that cannot be examined cannot be read either; one message is enough.
        let is_same = |why: &Distrust| matches!(why, Distrust::Unseen { .. } | Distrust::NoFile { .. });
        let distrust = distrust.filter(|why| unread.is_none() || !is_same(why));
        let errors = distrust.map(|why| untrusted(path, &why)).into_iter().chain(unread).collect();
        self.inputs.push(Input { path: path.into(), text, errors });
    }

    fn directory(&mut self, path: &Path) {
        let distrust = self.distrust(path, trust::check_directory);
        let (names, error) = match names(path) {
            Ok(names) => (names, distrust.map(|why| untrusted(path, &why))),
            Err(error) => (Vec::new(), Some(unreadable(path, &error))),
        };
        self.inputs.extend(error.map(|error| Input { path: path.into(), text: None, errors: vec![error] }));
        for name in names {
            self.file(&path.join(name));
        }
    }

    fn distrust(&mut self, path: &Path, check: fn(&Path, u32) -> Result<(), Distrust>) -> Option<Distrust> {
        let found = self.guard.and_then(|own| check(path, own).err());
        found.filter(|source| self.reported.insert(source.to_string()))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Mistake {
    Mistake::of_file(path, format!("cannot read the configuration {}: {error}", shown(path)))
}

/// Other users could change the file, and orphand has rights that they do not have.
fn untrusted(path: &Path, why: &Distrust) -> Mistake {
    Mistake::of_file(path, format!("cannot trust the configuration {}: {why}", shown(path)))
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

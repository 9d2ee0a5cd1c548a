//! Whether everybody can read a file by its path: the file itself says nothing about the folders that lead to it.
//!
//! Invariant: each folder on the way, those of symbolic links included, may be entered by all, or belongs to the asking
//! user. Groups do not count: who is in one is not known here.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
};

use rustix::{
    fs::{FileType, Mode, Stat, fstat, readlinkat},
    io::Errno,
};

use crate::{host::ProcessDir, os::way::follow};

/// Whether this user may enter this folder like everybody.
fn may_enter(folder: &Stat, user: u32) -> bool {
    let mode = Mode::from_raw_mode(folder.st_mode);
    mode.contains(Mode::XGRP | Mode::XOTH) || (folder.st_uid == user && mode.contains(Mode::XUSR))
}

/// Whether everybody may read this file, and `path`, as this process sees it, leads a process of `user` to it through
/// folders that all may enter.
pub(super) fn leads(dir: &ProcessDir, user: u32, path: &[u8], file: &Stat) -> bool {
    let is_it = |found: Stat| (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino);
    Mode::from_raw_mode(file.st_mode).contains(Mode::RGRP | Mode::ROTH)
        && walk(dir, user, path).is_ok_and(is_it)
}

/// What the path leads to; an error if one of the folders may not be entered, or the way is too long.
fn walk(dir: &ProcessDir, user: u32, path: &[u8]) -> Result<Stat, Errno> {
    let look = |at: &Path, from: Option<&Stat>| {
        if from.is_some_and(|from| !may_enter(from, user)) {
            return Err(Errno::ACCESS);
        }
        let entry = dir.entry_inside(at.as_os_str().as_bytes())?;
        let stat = fstat(&entry)?;
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let target = is_link.then(|| readlinkat(&entry, "", Vec::new())).transpose()?;
        Ok((stat, target.map(|target| OsString::from_vec(target.into_bytes()).into())))
    };
    follow(Path::new(OsStr::from_bytes(path)), look, |_| Errno::LOOP).map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt as _, symlink},
        path::Path,
    };

    use super::*;
    use crate::host::Proc;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn each_folder_on_the_way_counts() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("open/deep")).unwrap();
        fs::create_dir_all(at("closed/deep")).unwrap();
        for folder in ["", "open", "open/deep", "closed", "closed/deep"] {
            set(&at(folder), 0o755);
        }
        for file in ["open/deep/file", "closed/deep/file"] {
            fs::write(at(file), "").unwrap();
            set(&at(file), 0o644);
        }
        symlink(at("closed/deep/file"), at("open/absolute")).unwrap();
        symlink("../closed/../closed/deep", at("open/relative")).unwrap();
        symlink("round", at("open/round")).unwrap();
        let us = Proc::system().unwrap().process(std::process::id()).unwrap();
        let stranger = rustix::process::getuid().as_raw() + 1;
        let asks = |user, path: &str, file: &str| {
            let file = rustix::fs::stat(at(file)).unwrap();
            leads(&us, user, at(path).as_os_str().as_encoded_bytes(), &file)
        };
        let ways =
            ["closed/deep/file", "open/absolute", "open/relative/file", "open/./deep/../../closed/deep/file"];
        assert!(ways.iter().all(|way| asks(stranger, way, "closed/deep/file")));
        assert!(!asks(stranger, "closed/deep/file", "open/deep/file"), "another file");
        assert!(!asks(stranger, "open/round", "open/deep/file"));
        for mode in [0o750, 0o701, 0o700] {
            set(&at("closed"), mode);
            for way in ways {
                assert!(!asks(stranger, way, "closed/deep/file"), "{mode:o} {way}");
                assert!(asks(stranger - 1, way, "closed/deep/file"), "its owner: {mode:o} {way}");
            }
            assert!(asks(stranger, "open/deep/file", "open/deep/file"));
        }
    }
}

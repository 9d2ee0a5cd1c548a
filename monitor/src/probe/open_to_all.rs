//! Whether everybody can read a file by its path: the file itself says nothing about the folders that lead to it.
//!
//! Invariant: each folder on the way, those of symbolic links included, may be entered by all, or belongs to the asking
//! user. Groups do not count: who is in one is not known here.

use std::collections::VecDeque;

use rustix::{
    fs::{FileType, Mode, Stat, fstat, readlinkat},
    io::Errno,
};

use crate::host::ProcessDir;

/// The most symbolic links that are followed, as in the kernel.
const LINKS: usize = 40;
/// The most parts of a path, those of links included.
const PARTS: usize = 512;

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
        && walk(dir, user, path).is_ok_and(|found| found.is_some_and(is_it))
}

/// What the path leads to; `None` if one of the folders may not be entered, or the way is too long.
fn walk(dir: &ProcessDir, user: u32, path: &[u8]) -> Result<Option<Stat>, Errno> {
    let parts = |path: &[u8]| -> VecDeque<Vec<u8>> {
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (mut left, mut here, mut links) = (parts(path), Vec::<Vec<u8>>::new(), 0);
    let mut last = fstat(dir.entry_inside(b"/")?)?;
    for _ in 0..PARTS {
        let Some(part) = left.pop_front() else { return Ok(Some(last)) };
        if !may_enter(&last, user) {
            return Ok(None);
        }
        match part.as_slice() {
            b"." => continue,
            b".." => {
                here.pop();
            }
            _ => here.push(part),
        }
        let entry = dir.entry_inside(&[b"/", here.join(&b'/').as_slice()].concat())?;
        let stat = fstat(&entry)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            last = stat;
            continue;
        }
        links += 1;
        let target = readlinkat(&entry, "", Vec::new())?.into_bytes();
        if links > LINKS || target.is_empty() {
            return Ok(None);
        }
        here.pop();
        if target.starts_with(b"/") {
            here.clear();
            last = fstat(dir.entry_inside(b"/")?)?;
        }
        // The folder with the link is the last one that was entered, unless the link begins at the root.
        for part in parts(&target).into_iter().rev() {
            left.push_front(part);
        }
    }
    Ok(None)
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

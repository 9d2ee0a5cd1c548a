//! Follows a path to what it leads to, step by step as the kernel does (`path_resolution(7)`): whoever may change one of the
//! steps may change where it leads. For those who check who that is.

use std::{
    collections::VecDeque,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

/// The most symbolic links that are followed, as in the kernel.
const LINKS: usize = 40;
/// The most parts of a path, those of links included.
const PARTS: usize = 512;

/// Where the path leads, and what is there. `look` tells what is at a place, and the target of a symbolic link; it is given the
/// folder from which it is entered, but for the root. `endless` is the error of a way that is too long.
pub fn follow<T, E>(
    path: &Path,
    look: impl Fn(&Path, Option<&T>) -> Result<(T, Option<PathBuf>), E>,
    endless: impl FnOnce(&Path) -> E,
) -> Result<(PathBuf, T), E> {
    let root = || look(Path::new("/"), None).map(|(found, _)| (PathBuf::from("/"), found));
    let (mut at, mut found) = root()?;
    let (mut left, mut links, mut steps) = (parts(path), 0, 0);
    while let Some(part) = left.pop_front() {
        let mut next = at.clone();
        if part == ".." {
            next.pop();
        } else {
            next.push(part);
        }
        let (entry, target) = look(&next, Some(&found))?;
        steps += 1;
        links += usize::from(target.is_some());
        if links > LINKS || steps > PARTS {
            return Err(endless(&next));
        }
        let Some(target) = target else {
            (at, found) = (next, entry);
            continue;
        };
        if target.is_absolute() {
            (at, found) = root()?;
        }
        let mut way = parts(&target);
        way.append(&mut left);
        left = way;
    }
    Ok((at, found))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

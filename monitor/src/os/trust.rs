//! Whether other users could change a file that the daemon acts on, or replace one that it writes.
//!
//! Invariant: if a check passes, only root and the named user can change the path, at every step of the way to it: the owner of
//! a directory above the last one could replace that.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::way::follow;

/// The mode bits for write access of the group and of all users, `inode(7)`.
const OTHERS_WRITE: u32 = 0o022;
/// The sticky bit: only the owner of a directory's entry may rename or remove it, `inode(7)`.
const STICKY: u32 = 0o1000;

#[derive(Debug, thiserror::Error)]
pub enum Distrust {
    #[error("cannot look at {}: {source}", path.display())]
    Unseen { path: PathBuf, source: io::Error },
    #[error("{} belongs to user {uid}, who could change it: chown it to root", path.display())]
    Owner { path: PathBuf, uid: u32 },
    #[error("others may write {} (mode {mode:04o}): chmod go-w it", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("{} is no regular file", path.display())]
    NoFile { path: PathBuf },
    #[error("{} is no directory", path.display())]
    NoDirectory { path: PathBuf },
}

/// Checks that only root and the user `own` can change the content of this file, or which file it is. Follows links.
pub fn check(path: &Path, own: u32) -> Result<(), Distrust> {
    let (at, found) = walk(path, &[own])?;
    if found.is_file() { Ok(()) } else { Err(Distrust::NoFile { path: at }) }
}

/// Checks that only they can put a file into this directory, or change which directory it is. Follows links.
pub fn check_directory(path: &Path, own: u32) -> Result<(), Distrust> {
    let (at, found) = walk(path, &[own])?;
    let mode = found.mode() & 0o7777;
    match found.is_dir() {
        // The sticky bit protects existing entries, but lets other users add some.
        true if mode & OTHERS_WRITE != 0 => Err(Distrust::Writable { path: at, mode }),
        true => Ok(()),
        false => Err(Distrust::NoDirectory { path: at }),
    }
}

/// Checks that only root and the users `own` can replace what is, or will be, at `path`: they own every
/// existing step of the way. The last step may be a link only if the program that opens it follows links.
pub fn check_place(path: &Path, own: &[u32]) -> Result<(), Distrust> {
    match walk(path, own) {
        // The daemon creates the rest itself, in a directory that has passed.
        Err(Distrust::Unseen { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        passed => passed.map(|_| ()),
    }
}

/// Checks every step of the way. Returns the path that it leads to, and the metadata of the file there.
fn walk(path: &Path, own: &[u32]) -> Result<(PathBuf, Metadata), Distrust> {
    let unseen = |path: &Path, source| Distrust::Unseen { path: path.into(), source };
    let absolute = std::path::absolute(path).map_err(|source| unseen(path, source))?;
    let look = |at: &Path, _: Option<&Metadata>| {
        let found = fs::symlink_metadata(at).map_err(|source| unseen(at, source))?;
        judge(at, &found, own)?;
        let target = found.is_symlink().then(|| fs::read_link(at)).transpose();
        Ok((found, target.map_err(|source| unseen(at, source))?))
    };
    follow(&absolute, look, |at| unseen(at, Errno::LOOP.into()))
}

fn judge(path: &Path, found: &Metadata, own: &[u32]) -> Result<(), Distrust> {
    let mode = found.mode() & 0o7777;
    if found.uid() != 0 && !own.contains(&found.uid()) {
        return Err(Distrust::Owner { path: path.into(), uid: found.uid() });
    }
    // The mode of a link has no meaning, a device, pipe or socket no content. An access control list shows in the group bits: `acl(5)`.
    let kept = !(found.is_file() || found.is_dir()) || (found.is_dir() && mode & STICKY != 0);
    if mode & OTHERS_WRITE != 0 && !kept {
        return Err(Distrust::Writable { path: path.into(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A file in two directories that all pass, in a temporary directory below one with the sticky bit.
    fn scene() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("upper/lower");
        fs::create_dir_all(&dir).unwrap();
        mode(&top.path().join("upper"), 0o755);
        mode(&dir, 0o755);
        let file = dir.join("file");
        fs::write(&file, "").unwrap();
        mode(&file, 0o644);
        check(&file, own()).unwrap();
        (top, dir, file)
    }

    #[test]
    fn nobody_else_may_write_it_nor_a_directory_above() {
        let (top, dir, file) = scene();
        for (path, bits) in
            [(&file, 0o664), (&file, 0o602), (&dir, 0o775), (&top.path().join("upper"), 0o777)]
        {
            let before = fs::metadata(path).unwrap().mode() & 0o7777;
            mode(path, bits);
            let error = check(&file, own()).unwrap_err();
            assert!(
                matches!(&error, Distrust::Writable { path: at, mode } if at == path && *mode == bits),
                "{error}"
            );
            assert_eq!(
                error.to_string(),
                format!("others may write {} (mode {bits:04o}): chmod go-w it", path.display())
            );
            mode(path, before);
        }
        mode(&dir, 0o1777);
        check(&file, own()).unwrap();
    }

    #[test]
    fn links_are_followed_and_both_ways_judged() {
        let (top, dir, file) = scene();
        let link = top.path().join("link");
        symlink(&file, &link).unwrap();
        check(&link, own()).unwrap();
        symlink("../upper/./lower/../lower/file", dir.join("again")).unwrap();
        check(&top.path().join("upper/lower/again"), own()).unwrap_err();
        symlink("../lower/file", dir.join("well")).unwrap();
        check(&dir.join("well"), own()).unwrap();
        mode(&dir, 0o777);
        assert!(matches!(check(&link, own()), Err(Distrust::Writable { path, .. }) if path == dir));
        mode(&dir, 0o755);
        symlink("round", top.path().join("round")).unwrap();
        let error = check(&top.path().join("round"), own()).unwrap_err();
        assert!(error.to_string().contains("levels of symbolic links"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let (top, dir, file) = scene();
        assert!(matches!(check(&dir, own()), Err(Distrust::NoFile { .. })));
        assert!(matches!(check(&top.path().join("none"), own()), Err(Distrust::Unseen { .. })));
        assert!(matches!(check(&file.join("below"), own()), Err(Distrust::Unseen { .. })));
    }

    #[test]
    fn a_directory_that_others_may_add_to_is_refused() {
        let (top, dir, file) = scene();
        check_directory(&dir, own()).unwrap();
        for bits in [0o775, 0o757, 0o1777] {
            mode(&dir, bits);
            assert!(
                matches!(check_directory(&dir, own()), Err(Distrust::Writable { path, mode }) if path == dir && mode == bits)
            );
        }
        mode(&dir, 0o755);
        symlink(&dir, top.path().join("link")).unwrap();
        check_directory(&top.path().join("link"), own()).unwrap();
        assert!(matches!(check_directory(&file, own()), Err(Distrust::NoDirectory { .. })));
    }

    #[test]
    fn a_place_may_be_empty_and_its_way_is_judged() {
        let (top, dir, _file) = scene();
        check_place(&dir.join("none/yet/lock"), &[own()]).unwrap();
        mode(&top.path().join("upper"), 0o777);
        let error = check_place(&dir.join("none/yet/lock"), &[own()]).unwrap_err();
        assert!(matches!(&error, Distrust::Writable { path, .. } if path.ends_with("upper")), "{error}");
        check_place(Path::new("/dev/null"), &[]).unwrap();
        // Other users cannot replace an entry of a sticky directory, but may be the first to create it.
        mode(&top.path().join("upper"), 0o1777);
        check_place(&dir.join("lock"), &[own()]).unwrap();
        fs::write(dir.join("lock"), "").unwrap();
        mode(&dir.join("lock"), 0o666);
        check_place(&dir.join("lock"), &[own()]).unwrap_err();
    }

    #[test]
    #[ignore = "needs root"]
    fn its_owner_is_root_or_the_user_named() {
        let (_top, dir, file) = scene();
        chown(&file, Some(54321), None).unwrap();
        let error = check(&file, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} belongs to user 54321, who could change it: chown it to root", file.display())
        );
        check(&file, 54321).unwrap();
        chown(&dir, Some(54322), None).unwrap();
        assert!(matches!(check(&file, 54321), Err(Distrust::Owner { uid: 54322, .. })));
        assert!(matches!(check_place(&dir.join("none"), &[54321]), Err(Distrust::Owner { uid: 54322, .. })));
        check_place(&dir.join("none"), &[54321, 54322]).unwrap();
    }
}

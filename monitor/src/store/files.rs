//! The state directory and the store's file: created with safe modes, checked, opened, set aside if damaged.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use crate::os::{if_there, text_file, trust};

pub(super) const FILE: &str = "orphand.db";
/// A file beside it that tells the next daemon about damage.
const SUSPECT: &str = ".suspect";
/// The successor of a damaged file, until it takes its place.
pub(super) const NEW: &str = ".new";
/// How many damaged files are kept for inspection; older ones are removed.
const KEPT_DAMAGED: usize = 3;

pub fn create_directory(dir: &Path) -> Result<(), StoreError> {
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::file("create the state directory", dir, &error))
        }
        _ => check_private(dir, rustix::process::geteuid().as_raw()),
    }?;
    // Where there is no such thing, nothing is put elsewhere.
    let _ = overwrite_in_place(dir);
    Ok(())
}

/// Files that are made in it from now on are overwritten in place, where the file system else puts each page elsewhere (btrfs). SQLite
/// writes its index (`-shm`) through memory: where there is no room for such a page, that ends the process (SIGBUS).
fn overwrite_in_place(dir: &Path) -> io::Result<()> {
    let dir = fs::File::open(dir)?;
    let flags = rustix::fs::ioctl_getflags(&dir)?;
    Ok(rustix::fs::ioctl_setflags(&dir, flags | rustix::fs::IFlags::NOCOW)?)
}

/// Whether a daemon of `user` could keep its store in `dir`, which need not exist; for another user than the caller an estimate. Creates
/// nothing. Returns the free space in bytes.
pub fn usable(dir: &Path, user: u32) -> Result<u64, StoreError> {
    let failed = |operation| move |error: io::Error| StoreError::file(operation, dir, &error);
    let there = dir.try_exists().map_err(failed("read the state directory"))?;
    let nearest = if there {
        check_private(dir, user)?;
        dir
    } else {
        dir.ancestors().find(|above| above.exists()).unwrap_or(dir)
    };
    let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let flags = rustix::fs::AtFlags::EACCESS;
    rustix::fs::accessat(rustix::fs::CWD, nearest, may, flags).map_err(|errno| {
        failed(if there { "write into" } else { "create the state directory" })(errno.into())
    })?;
    let room =
        rustix::fs::statvfs(nearest).map_err(|errno| failed("read the free space of")(errno.into()))?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

fn check_private(dir: &Path, user: u32) -> Result<(), StoreError> {
    trust::check_directory(dir, user).map_err(|why| {
        let advice = "only orphand may write to it (chown root, chmod 700); --state-dir names another one";
        StoreError::Other(format!("the state directory cannot be used: {why}; {advice}"))
    })
}

/// Opens a file, of mode 0600 if it is created, for writing. SQLite gives its other files the same mode.
pub(super) fn connect(file: &Path) -> Result<Connection, StoreError> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StoreError::file("make", file, &error));
        }
        _ => {}
    }
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(file, flags)?;
        // Nobody else writes, unless a person does by hand.
        db.busy_timeout(Duration::from_secs(30))?;
        // Allows the space of deleted rows to be released; must be set before the first table. With `NORMAL`, fsync(2)
        // is called only where the log is copied and begins again.
        db.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        db.query_row("PRAGMA journal_size_limit = 4194304", [], |_| Ok(()))?;
        db.execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY; \
             PRAGMA trusted_schema = OFF",
        )?;
        db.set_prepared_statement_cache_capacity(32);
        Ok(db)
    };
    open().map_err(|error| StoreError::of("open", file, &error))
}

/// Damage that was found while a daemon ran.
pub(super) fn suspected(file: &Path) -> Option<String> {
    match if_there(text_file(&beside(file, SUSPECT))) {
        Ok(what) => what.map(|what| what.trim().to_owned()),
        Err(error) => Some(format!("its mark cannot be read: {error}")),
    }
}

pub(super) fn mark_suspect(file: &Path, what: &str) {
    // If this fails, the next daemon finds the damage by itself.
    let _ = fs::write(beside(file, SUSPECT), what);
}

/// Renames the file and what belongs to it, and puts its successor in its place, if there is one. Returns the new path.
pub(super) fn set_aside(file: &Path, at: jiff::Timestamp) -> Result<PathBuf, StoreError> {
    // To the microsecond, so that no two have one name.
    let aside = beside(file, &format!(".damaged-{}", at.strftime("%Y%m%dT%H%M%S%.6fZ")));
    let renamed = |from: PathBuf, to: PathBuf| {
        if_there(fs::rename(from, to)).map_err(|error| StoreError::file("rename", file, &error))
    };
    for suffix in ["-wal", "-shm", ""] {
        renamed(beside(file, suffix), beside(&aside, suffix))?;
    }
    renamed(beside(file, NEW), file.to_owned())?;
    if_there(fs::remove_file(beside(file, SUSPECT)))
        .map_err(|error| StoreError::file("remove the mark beside", file, &error))?;
    remove_old(file);
    Ok(aside)
}

fn remove_old(file: &Path) {
    let Some(entries) = file.parent().and_then(|dir| fs::read_dir(dir).ok()) else { return };
    let prefix = format!("{FILE}.damaged-");
    let mut old: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    old.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    // In the order of their dates.
    old.sort_unstable();
    let excess = old.len().saturating_sub(KEPT_DAMAGED);
    for path in old.iter().take(excess) {
        for suffix in ["", "-wal", "-shm"] {
            // If this fails, they only take space.
            let _ = fs::remove_file(beside(path, suffix));
        }
    }
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

pub(super) fn identity(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}

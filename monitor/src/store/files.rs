//! The state directory and the store's file: created with safe modes, checked, opened, renamed if damaged.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use super::{
    error::StoreError,
    schema::{self, STEPS},
};

/// The name of the file in the state directory.
pub(super) const FILE: &str = "orphand.db";
/// The name of a file that tells the next daemon about damage.
const SUSPECT: &str = "orphand.db.suspect";
/// How many damaged files are kept for inspection; older ones are removed.
const KEPT_DAMAGED: usize = 3;
/// Up to this size in bytes the whole file is checked at the start. Of a larger file, only the tables that
/// run numbers depend on are; the rest is checked later in the background.
const CHECKED_AT_START: u64 = 4 << 20;

/// How long is waited for SQLite's write lock.
pub(super) const WRITE_LOCK: Duration = Duration::from_secs(30);

/// Creates the directory if it does not exist, and checks that no other user can write to it.
pub(super) fn create_directory(dir: &Path) -> Result<(), StoreError> {
    let failed = |operation| move |error: io::Error| StoreError::file(operation, dir, &error);
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("create the state directory")(error));
        }
        _ => {}
    }
    check_private(dir, rustix::process::geteuid().as_raw())
}

/// Checks whether a daemon of `user` could keep its store in `dir`: no other user can write to it, and it
/// exists or can be created. For another user than the caller this is an estimate. Creates nothing. Returns
/// the free space in bytes.
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

/// Checks that only this user and root can write to it.
fn check_private(dir: &Path, user: u32) -> Result<(), StoreError> {
    let failed = |operation| move |error: io::Error| StoreError::file(operation, dir, &error);
    let found = fs::metadata(dir).map_err(failed("read the state directory"))?;
    let open = |why| {
        let advice = "only orphand may write to it (chown root, chmod 700)";
        Err(StoreError::Other(format!("the state directory {} {why}: {advice}", dir.display())))
    };
    if !found.is_dir() {
        return Err(failed("use as the state directory")(io::ErrorKind::NotADirectory.into()));
    }
    if found.uid() != user && found.uid() != 0 {
        return open("belongs to another user");
    }
    if found.mode() & 0o022 != 0 {
        return open("can be written by others");
    }
    Ok(())
}

/// Creates an empty file of mode 0600 if it does not exist. SQLite gives its other files the same mode.
pub(super) fn create_if_missing(file: &Path) -> Result<(), StoreError> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::file("make", file, &error))
        }
        _ => Ok(()),
    }
}

/// Opens a connection for writing. Only who copies the log, and who begins it again, calls fsync(2).
pub(super) fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    // The daemon's own maintenance thread holds the write lock for short times, and nobody else writes.
    db.busy_timeout(WRITE_LOCK)?;
    // Allows the space of deleted rows to be released; must be set before the first table.
    db.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    db.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY; \
         PRAGMA trusted_schema = OFF",
    )?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

/// Checks what can be checked quickly. `Err` is damage or a failure to read.
pub(super) fn check_quickly(db: &Connection, file: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::of("read", file, &source);
    if let Ok(what) = fs::read_to_string(suspect(file)) {
        return Err(StoreError::Damaged { path: file.to_owned(), what: what.trim().to_owned() });
    }
    let version = schema::version(db).map_err(failed)?;
    let known = schema::newest(STEPS);
    if version > known {
        return Err(StoreError::Newer { path: file.to_owned(), version, known });
    }
    let bytes = fs::metadata(file).map_or(0, |found| found.len());
    let checks: &[&str] = match (version, bytes <= CHECKED_AT_START) {
        (0, _) => &[],
        (_, true) => &["PRAGMA quick_check(1)"],
        (_, false) => {
            &["PRAGMA quick_check(runs)", "PRAGMA quick_check(keys)", "PRAGMA quick_check(daemons)"]
        }
    };
    checks.iter().try_for_each(|check| verify(db, file, check))
}

/// Checks the whole file, however long that takes.
pub(super) fn check_all(db: &Connection, file: &Path) -> Result<(), StoreError> {
    verify(db, file, "PRAGMA quick_check(1)")
}

fn verify(db: &Connection, file: &Path, check: &str) -> Result<(), StoreError> {
    let result: String =
        db.query_row(check, [], |row| row.get(0)).map_err(|error| StoreError::of("check", file, &error))?;
    match result.as_str() {
        "ok" => Ok(()),
        _ => Err(StoreError::Damaged { path: file.to_owned(), what: result.replace('\n', " ") }),
    }
}

/// Tells the next daemon that the file is damaged.
pub(super) fn mark_suspect(file: &Path, what: &str) {
    // If this fails, the next daemon finds the damage by itself.
    let _ = fs::write(suspect(file), what);
}

fn suspect(file: &Path) -> PathBuf {
    file.with_file_name(SUSPECT)
}

/// Renames the file and the files that belong to it. Returns the new path.
pub(super) fn rename_damaged(file: &Path, at: jiff::Timestamp) -> Result<PathBuf, StoreError> {
    let failed = |error: io::Error| StoreError::file("rename", file, &error);
    // To the microsecond, so that no two have one name.
    let aside = file.with_file_name(format!("{FILE}.damaged-{}", at.strftime("%Y%m%dT%H%M%S%.6fZ")));
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(with_suffix(file, suffix), with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    match fs::remove_file(suspect(file)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    remove_old(file);
    Ok(aside)
}

/// Removes all damaged files but the latest.
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
            let _ = fs::remove_file(with_suffix(path, suffix));
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The file that a path leads to: device and inode.
pub(super) fn identity(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}

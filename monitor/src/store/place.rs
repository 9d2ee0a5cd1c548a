//! The directory and the file: made with the right modes, checked, opened, set aside where damaged.

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

/// The file in the state directory.
pub(super) const FILE: &str = "orphand.db";
/// A mark that the file was found to be damaged while the daemon ran.
const SUSPECT: &str = "orphand.db.suspect";
/// Damaged files that are kept for whoever wants to know; older ones are removed.
const KEPT_DAMAGED: usize = 3;
/// A larger file is not read as a whole at the start: the tables that numbers rest on are, the rest later in the background.
const CHECKED_AT_START: u64 = 4 << 20;

/// Makes the directory where it is missing, and sees that nobody else can write into it.
pub(super) fn directory(dir: &Path) -> Result<(), StoreError> {
    let failed = |operation| move |source| StoreError::File { operation, path: dir.to_owned(), source };
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("make the state directory")(error));
        }
        _ => {}
    }
    vet(dir, rustix::process::geteuid().as_raw())
}

/// Whether a daemon of this user could keep its store in this directory: it is that user's alone, and can be made or written (as far as
/// we can tell of another one). Makes nothing. Gives the bytes that are free there.
pub fn usable(dir: &Path, user: u32) -> Result<u64, StoreError> {
    let failed = |operation| move |source| StoreError::File { operation, path: dir.to_owned(), source };
    let there = dir.try_exists().map_err(failed("look at the state directory"))?;
    let nearest = if there {
        vet(dir, user)?;
        dir
    } else {
        dir.ancestors().find(|above| above.exists()).unwrap_or(dir)
    };
    let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let flags = rustix::fs::AtFlags::EACCESS;
    rustix::fs::accessat(rustix::fs::CWD, nearest, may, flags).map_err(|errno| {
        failed(if there { "write into" } else { "make the state directory" })(errno.into())
    })?;
    let room = rustix::fs::statvfs(nearest).map_err(|errno| failed("look at the disk of")(errno.into()))?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Sees that nobody but this user (and root) can write into it.
fn vet(dir: &Path, user: u32) -> Result<(), StoreError> {
    let failed = |operation| move |source| StoreError::File { operation, path: dir.to_owned(), source };
    let found = fs::metadata(dir).map_err(failed("look at the state directory"))?;
    let open = |why| Err(StoreError::Open { path: dir.to_owned(), why });
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

/// Makes an empty file of mode 0600 if there is none; whether it did. SQLite gives its other files the same mode.
pub(super) fn touch(file: &Path) -> Result<bool, StoreError> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(StoreError::File { operation: "make", path: file.to_owned(), source }),
    }
}

/// A connection for writing. `synchronous` is SQLite's word for when fsync(2) is called.
pub(super) fn connect(file: &Path, synchronous: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    // The gate keeps writers of this daemon apart; nobody else writes.
    db.busy_timeout(Duration::from_millis(50))?;
    // The space of deleted rows can be given back; has to be said before there is a table.
    db.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    db.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY; \
         PRAGMA trusted_schema = OFF"
    ))?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

/// Whether the file can be trusted, as far as that can be found out quickly. `Err` is damage or a failure.
pub(super) fn examine(db: &Connection, file: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::of("read", file, source);
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

/// The whole file, however long it takes.
pub(super) fn examine_all(db: &Connection, file: &Path) -> Result<(), StoreError> {
    verify(db, file, "PRAGMA quick_check(1)")
}

fn verify(db: &Connection, file: &Path, check: &str) -> Result<(), StoreError> {
    let said: String =
        db.query_row(check, [], |row| row.get(0)).map_err(|error| StoreError::of("check", file, error))?;
    match said.as_str() {
        "ok" => Ok(()),
        _ => Err(StoreError::Damaged { path: file.to_owned(), what: said.replace('\n', " ") }),
    }
}

/// Leaves word for the next daemon that the file is damaged.
pub(super) fn mark_suspect(file: &Path, what: &str) {
    // Where this fails the next daemon finds out by itself.
    let _ = fs::write(suspect(file), what);
}

fn suspect(file: &Path) -> PathBuf {
    file.with_file_name(SUSPECT)
}

/// Renames the file and what belongs to it; the new name.
pub(super) fn set_aside(file: &Path, at: jiff::Timestamp) -> Result<PathBuf, StoreError> {
    let failed = |source| StoreError::File { operation: "set aside", path: file.to_owned(), source };
    let date = at.strftime("%Y%m%dT%H%M%SZ");
    let base = format!("{FILE}.damaged-{date}");
    let names = std::iter::once(base.clone()).chain((2..1000).map(|n| format!("{base}-{n}")));
    let mut free = names.map(|name| file.with_file_name(name)).filter(|path| !path.exists());
    let aside = free.next().unwrap_or_else(|| file.with_file_name(&base));
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
    forget_old(file);
    Ok(aside)
}

/// Removes all damaged files but the latest.
fn forget_old(file: &Path) {
    let Some(entries) = file.parent().and_then(|dir| fs::read_dir(dir).ok()) else { return };
    let prefix = format!("{FILE}.damaged-");
    let mut old: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    old.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&prefix) && !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    old.sort_by_key(|path| fs::metadata(path).and_then(|found| found.modified()).ok());
    let excess = old.len().saturating_sub(KEPT_DAMAGED);
    for path in old.iter().take(excess) {
        for suffix in ["", "-wal", "-shm"] {
            // They cost space, nothing else.
            let _ = fs::remove_file(with_suffix(path, suffix));
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Which file a path leads to: device and inode.
pub(super) fn identity(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}

//! Opening a store. A file of an earlier version is set aside and copied into a new one. So is one that is damaged: of that
//! the runs and followed servers that can still be read, so that no run number is used twice.

use std::{fs, path::Path};

use rusqlite::{Connection, ErrorCode, OpenFlags, params, types::Value};

use super::{
    Limits, Store, StoreError, files, knowledge,
    schema::{self, READABLE, VERSION, wall_us},
};
use crate::os::clock;
use orphand_core::model::{BootTime, Knowledge};

/// The tables with their order, each after those that it refers to. Of a damaged file four are copied, and servers only if followed.
const TABLES: [(&str, &str); 7] = [
    ("boots", "id"),
    ("keys", "id"),
    ("runs", "key, generation"),
    ("servers", "id"),
    ("signals", "server, at"),
    ("daemons", "id"),
    ("losses", "at"),
];

#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    pub knowledge: Knowledge,
    /// What became of a file that could not be used, as a line for the log.
    pub set_aside: Option<String>,
}

impl Store {
    /// Opens the store in `dir`, and creates it if it does not exist. `boot_id` is the kernel's boot id;
    /// `offset_ns` is the offset from `CLOCK_BOOTTIME` to the wall clock in nanoseconds.
    pub fn open(dir: &Path, boot_id: &str, offset_ns: i64, limits: Limits) -> Result<Opened, StoreError> {
        files::create_directory(dir)?;
        let file = dir.join(files::FILE);
        let new = files::beside(&file, files::NEW);
        if !file.exists() && new.exists() {
            // A daemon was killed when it had set the old file aside.
            fs::rename(&new, &file).map_err(|error| StoreError::file("rename", &new, &error))?;
        }
        let now = clock::now();
        let open = || Self::open_file(&file, boot_id, offset_ns, limits, now);
        let (why, is_damaged) = match open() {
            Err(StoreError::Damaged { what, .. }) => (format!("was damaged ({what})"), true),
            Err(StoreError::Older { version, .. }) => (format!("has version {version}"), false),
            opened => return opened,
        };
        let began = wall_us(now, offset_ns);
        let copied = copy(&file, &new, is_damaged, boot_id, began);
        if let Err(error @ StoreError::Other(_)) = copied {
            // The disk is full, say: the file stays, and the next start tries again.
            return Err(error);
        }
        let aside = files::set_aside(&file, jiff::Timestamp::from_microsecond(began).unwrap_or_default())?;
        let mut opened = open()?;
        // Whoever wrote it may have been of this boot.
        opened.knowledge.restarted = true;
        // Not all that it knew may be left.
        opened.knowledge.watched_until = None;
        opened.knowledge.incomplete_before = (is_damaged || copied.is_err()).then_some(now);
        let (file, aside) = (file.display(), aside.display());
        let rest = match copied {
            Ok(1) => "1 run was recovered".to_owned(),
            Ok(runs) if runs > 0 => format!("{runs} runs were recovered"),
            Err(StoreError::Damaged { what, .. }) if !is_damaged => {
                format!("it cannot be used ({what}), so run numbers begin at 1 again")
            }
            _ => "run numbers begin at 1 again".to_owned(),
        };
        opened.set_aside =
            Some(format!("the store {file} {why}: it was renamed to {aside}, and a new one begins; {rest}"));
        Ok(opened)
    }

    fn open_file(
        file: &Path,
        boot_id: &str,
        offset_ns: i64,
        limits: Limits,
        now: BootTime,
    ) -> Result<Opened, StoreError> {
        let failed = |operation| move |source| StoreError::of(operation, file, &source);
        let mut db = files::connect(file)?;
        check(&db, file)?;
        schema::create(&mut db).map_err(failed("write"))?;
        let (boot, daemon) = insert_daemon(&mut db, boot_id, offset_ns, now).map_err(failed("write"))?;
        let knowledge = knowledge::read(&db, boot).map_err(failed("read"))?;
        let identity = files::identity(file);
        let (file, tidying_failed) = (file.to_owned(), false);
        let store =
            Self { file, db, identity, limits, boot, daemon, offset_ns, tidying_failed, unusable: None };
        Ok(Opened { store, knowledge, set_aside: None })
    }
}

/// Has SQLite check all of the file: one of the greatest size takes a sixth of a second.
fn check(db: &Connection, file: &Path) -> Result<(), StoreError> {
    let damaged = |what| Err(StoreError::Damaged { path: file.to_owned(), what });
    if let Some(what) = files::suspected(file) {
        return damaged(what);
    }
    if !schema::is_made(db, file)? {
        return Ok(());
    }
    let found = db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match found.map_err(|error| StoreError::of("check", file, &error))?.as_str() {
        "ok" => Ok(()),
        what => damaged(what.replace('\n', " ")),
    }
}

/// Inserts this boot and this daemon, and ends what an earlier boot left open. Returns their row ids. The first start of all was now
/// if no other is known.
fn insert_daemon(
    db: &mut Connection,
    boot_id: &str,
    offset_ns: i64,
    now: BootTime,
) -> rusqlite::Result<(i64, i64)> {
    let (booted, began) = (wall_us(BootTime(0), offset_ns), wall_us(now, offset_ns));
    let change = db.transaction()?;
    change.execute(
        "INSERT OR IGNORE INTO boots (boot, first_start)
         SELECT ?1, iif(NOT EXISTS (SELECT 1 FROM boots), ?2, NULL)",
        params![boot_id, now.0.cast_signed()],
    )?;
    let boot = knowledge::boot_row(&change, boot_id)?;
    change.execute(
        "UPDATE servers SET ended = max(since, ?2), how = 'unseen', processes = NULL
         WHERE ended IS NULL AND boot <> ?1",
        [boot, booted],
    )?;
    // `alive` stays as it was last known.
    change.execute(
        "UPDATE runs SET ended = max(started, ?2) WHERE ended IS NULL AND boot <> ?1",
        [boot, booted],
    )?;
    change.execute(
        "INSERT INTO daemons (boot, version, offset_ns, started) VALUES (?1, ?2, ?3, ?4)",
        params![boot, env!("CARGO_PKG_VERSION"), offset_ns, began],
    )?;
    let daemon = change.last_insert_rowid();
    knowledge::forget_excess(&change, began)?;
    change.commit()?;
    Ok((boot, daemon))
}

/// Makes `new` of what can be read in the file `from`. Returns the number of runs. If what was copied cannot be
/// understood, nothing is, and the error is [`StoreError::Damaged`]. If `new` cannot be written, it is another one.
fn copy(from: &Path, new: &Path, is_damaged: bool, boot_id: &str, now: i64) -> Result<u64, StoreError> {
    let unusable = |what: String| StoreError::Damaged { path: from.to_owned(), what };
    let unread = |error: rusqlite::Error| unusable(error.to_string());
    let unwritten = |error: rusqlite::Error| StoreError::refused("write", new, &error);
    for suffix in ["", "-wal", "-shm"] {
        // One that is left of an attempt that was killed. If this fails, so does what follows.
        let _ = fs::remove_file(files::beside(new, suffix));
    }
    let mut db = files::connect(new)?;
    let old = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(unread)?;
    let version = schema::version(&old).map_err(unread)?;
    if !(READABLE..=VERSION).contains(&version) {
        return Err(unusable(format!("it has version {version}")));
    }
    schema::create(&mut db).map_err(unwritten)?;
    let change = db.transaction().map_err(unwritten)?;
    let mut runs = 0;
    for (table, order) in TABLES.into_iter().take(if is_damaged { 4 } else { TABLES.len() }) {
        let which = if is_damaged && table == "servers" { " WHERE ended IS NULL" } else { "" };
        let select = format!("SELECT * FROM {table}{which}");
        // From the latest back until a row cannot be read, then from the oldest on.
        let latest = format!("{select} ORDER BY {} DESC", order.replace(',', " DESC,"));
        let oldest = format!("{select} ORDER BY {order}");
        let copied = copy_rows(&old, &change, table, &latest).map_err(unwritten)?
            + copy_rows(&old, &change, table, &oldest).map_err(unwritten)?;
        runs = if table == "runs" { copied } else { runs };
    }
    change.execute("DELETE FROM runs WHERE key NOT IN (SELECT id FROM keys)", []).map_err(unwritten)?;
    knowledge::forget_excess(&change, now).map_err(unwritten)?;
    knowledge::boot_row(&change, boot_id).and_then(|boot| knowledge::read(&change, boot)).map_err(unread)?;
    change.commit().map_err(unwritten)?;
    Ok(runs)
}

/// Returns how many rows were copied, or why one that could be read cannot be written.
fn copy_rows(old: &Connection, new: &Connection, table: &str, select: &str) -> rusqlite::Result<u64> {
    let Ok(mut read) = old.prepare(select) else { return Ok(0) };
    let columns = read.column_count();
    let marks = vec!["?"; columns].join(", ");
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let names: Vec<String> = read.column_names().into_iter().map(quoted).collect();
    let insert = format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({marks})", names.join(", "));
    // Skips a table with foreign columns.
    let Ok(mut write) = new.prepare(&insert) else { return Ok(0) };
    let mut copied = 0;
    let Ok(mut rows) = read.query([]) else { return Ok(0) };
    // Stops at the first row that cannot be read.
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<Value>> = (0..columns).map(|column| row.get(column)).collect();
        let Ok(values) = values else { break };
        copied += match write.execute(rusqlite::params_from_iter(values)) {
            Ok(rows) => rows as u64,
            // A value that damage has put there.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(copied)
}

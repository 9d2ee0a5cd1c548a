//! Bounds by age and by size: the oldest goes first, in small steps, never what numbers or verdicts rest on.
//!
//! What stays in any case: the row with the last number of each key, servers that are still followed and the runs they are
//! accounted to, runs that have not ended, this daemon.

use std::time::Duration;

use rusqlite::{Connection, params};

/// What a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What ended longer ago is forgotten.
    pub age: Duration,
    /// Bytes of the file, what is free in it left out.
    pub bytes: u64,
}

impl Default for Limits {
    /// 90 days, 64 MiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(90 * 24 * 60 * 60), bytes: 64 << 20 }
    }
}

/// Rows deleted at once: what the daemon may have to wait for, a millisecond or so.
const ROWS: i64 = 64;
/// Pages given back to the file system at once.
const PAGES: u32 = 64;

/// What can be deleted of each table, oldest first; ?1 is the time it has to be older than, ?2 how many rows.
const OLDEST: [&str; 4] = [
    "DELETE FROM servers WHERE id IN (SELECT id FROM servers WHERE ended < ?1 ORDER BY ended LIMIT ?2)",
    "DELETE FROM losses WHERE at IN (SELECT at FROM losses WHERE at < ?1 ORDER BY at LIMIT ?2)",
    "DELETE FROM daemons WHERE id IN (SELECT id FROM daemons WHERE started < ?1
       AND id < (SELECT max(id) FROM daemons) ORDER BY id LIMIT ?2)",
    "DELETE FROM runs WHERE (key, generation) IN (
       SELECT r.key, r.generation FROM runs r
       WHERE r.ended < ?1 AND r.generation < (SELECT max(generation) FROM runs m WHERE m.key = r.key)
         AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.ended IS NULL AND s.key = r.key AND s.generation = r.generation)
       ORDER BY r.ended LIMIT ?2)",
];

/// Deletes the next few rows that are too old or too many; whether there may be more to do. `now` is in microseconds of the wall clock.
pub(super) fn step(db: &Connection, limits: Limits, now: i64) -> rusqlite::Result<bool> {
    let age = i64::try_from(limits.age.as_micros()).unwrap_or(i64::MAX);
    if delete(db, now.saturating_sub(age))? {
        return Ok(true);
    }
    if used(db)? > limits.bytes && delete(db, i64::MAX)? {
        return Ok(true);
    }
    give_back(db)
}

fn delete(db: &Connection, before: i64) -> rusqlite::Result<bool> {
    for sql in OLDEST {
        if db.prepare_cached(sql)?.execute(params![before, ROWS])? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bytes in use.
fn used(db: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(db, "page_count")?.saturating_sub(pragma(db, "freelist_count")?);
    Ok(pages.saturating_mul(pragma(db, "page_size")?))
}

/// Shrinks the file by what is free in it, once that is worth it.
fn give_back(db: &Connection) -> rusqlite::Result<bool> {
    let free = pragma(db, "freelist_count")?;
    if free < u64::from(PAGES) || free < pragma(db, "page_count")? / 8 {
        return Ok(false);
    }
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(true)
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<u64> {
    let value: i64 = db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?;
    Ok(value.unsigned_abs())
}

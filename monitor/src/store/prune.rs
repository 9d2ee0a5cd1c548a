//! Limits on the store by age, by user and by size. Rows are deleted in small steps, between which facts are written: the
//! oldest first, of the user with the most.
//!
//! Never deleted are: the row with the last number of each remembered key, tracked servers and their runs, runs that
//! have not ended, and this daemon.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use rusqlite::{Connection, ToSql, params};

use super::schema::share;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub age: Duration,
    /// The size of the file in bytes, without its free pages.
    pub bytes: u64,
    pub rows: u64,
}

impl Default for Limits {
    /// 90 days, 64 MiB, and 16,384 runs and servers of one user.
    fn default() -> Self {
        Self { age: Duration::from_secs(90 * 24 * 60 * 60), bytes: 64 << 20, rows: 16_384 }
    }
}

/// How many rows are deleted, or free pages released, in one step: about ten milliseconds, which the daemon may have to wait.
const STEP: u64 = 1024;

/// Deletes the oldest rows: ?1 is the time before which they ended, ?2 their number. Of losses and daemons 4,096 are kept.
const SERVERS: &str =
    "DELETE FROM servers WHERE id IN (SELECT id FROM servers WHERE ended < ?1 ORDER BY ended LIMIT ?2)";
const RUNS: &str = "DELETE FROM runs WHERE (key, generation) IN (SELECT r.key, r.generation FROM runs r WHERE r.ended < ?1
    AND ((SELECT forgotten FROM keys k WHERE k.id = r.key) IS NOT NULL
         OR r.generation < (SELECT max(generation) FROM runs m WHERE m.key = r.key))
    AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.ended IS NULL AND s.key = r.key AND s.generation = r.generation)
    ORDER BY r.ended LIMIT ?2)";
const LOSSES: &str = "DELETE FROM losses WHERE at IN (SELECT at FROM losses
    WHERE at < ?1 OR at <= (SELECT at FROM losses ORDER BY at DESC LIMIT 1 OFFSET 4096) ORDER BY at LIMIT ?2)";
const DAEMONS: &str =
    "DELETE FROM daemons WHERE id IN (SELECT id FROM daemons WHERE id < (SELECT max(id) FROM daemons)
    AND (started < ?1 OR id <= (SELECT max(id) - 4096 FROM daemons)) ORDER BY id LIMIT ?2)";
const KEYS: &str = "DELETE FROM keys WHERE id IN (SELECT id FROM keys k WHERE forgotten < ?1
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.key = k.id)
    AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.key = k.id) LIMIT ?2)";

/// Deletes some of what exceeds the limits at `now` (microseconds of the wall clock). Returns whether there may be more.
pub(super) fn step(db: &Connection, limits: Limits, now: i64) -> rusqlite::Result<bool> {
    let too_old = now.saturating_sub(i64::try_from(limits.age.as_micros()).unwrap_or(i64::MAX));
    for oldest in [SERVERS, LOSSES, DAEMONS, RUNS] {
        if delete(db, oldest, too_old, STEP)? {
            return Ok(true);
        }
    }
    let mut users = users(db)?;
    for user in &users {
        if user.delete(db, user.rows().saturating_sub(limits.rows).min(STEP))? {
            return Ok(true);
        }
    }
    if used(db)? > limits.bytes {
        // Of the user with the most rows in the share with the most rows. A share below the average never loses rows
        // because of others, even if they cannot be deleted there.
        let mut of_share: BTreeMap<Option<i64>, u64> = BTreeMap::new();
        for user in &users {
            *of_share.entry(user.share).or_default() += user.rows();
        }
        let (all, shares) = (of_share.values().sum::<u64>(), of_share.len() as u64);
        let of_share = |user: &User| of_share.get(&user.share).copied().unwrap_or_default();
        users.sort_by_key(|user| Reverse((of_share(user), user.rows(), user.uid)));
        for user in users.iter().filter(|user| of_share(user).saturating_mul(shares) >= all) {
            // Few, because it is not known how much room they take.
            if user.delete(db, STEP / 4)? {
                return Ok(true);
            }
        }
        for oldest in [LOSSES, DAEMONS] {
            if delete(db, oldest, i64::MAX, STEP)? {
                return Ok(true);
            }
        }
    }
    Ok(delete(db, KEYS, i64::MAX, STEP)? || release_pages(db)?)
}

/// Deletes at most so many of the oldest rows. `which` is the first parameter. Returns whether there were any.
fn delete(db: &Connection, sql: &str, which: impl ToSql, most: u64) -> rusqlite::Result<bool> {
    Ok(most > 0 && db.prepare_cached(sql)?.execute(params![which, most.cast_signed()])? > 0)
}

struct User {
    uid: Option<i64>,
    /// Rows without a user are one share.
    share: Option<i64>,
    servers: u64,
    runs: u64,
}

impl User {
    const fn rows(&self) -> u64 {
        self.servers + self.runs
    }

    /// Deletes at most so many: of the table with more of them, if any can be deleted there.
    fn delete(&self, db: &Connection, most: u64) -> rusqlite::Result<bool> {
        let of_user = |sql: &str| {
            let sql = sql.replacen("ended < ?1", "ended < 9223372036854775807 AND uid IS ?1", 1);
            delete(db, &sql, self.uid, most)
        };
        let [first, second] = if self.servers >= self.runs { [SERVERS, RUNS] } else { [RUNS, SERVERS] };
        Ok(of_user(first)? || of_user(second)?)
    }
}

fn users(db: &Connection) -> rusqlite::Result<Vec<User>> {
    let count = |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let sql = format!(
        "SELECT uid, {}, sum(servers), sum(runs) FROM (
           SELECT uid, count(*) AS servers, 0 AS runs FROM servers WHERE ended IS NOT NULL GROUP BY uid
           UNION ALL SELECT uid, 0, count(ended) FROM runs GROUP BY uid) GROUP BY uid",
        share("uid")
    );
    let user = |row: &rusqlite::Row<'_>| {
        Ok(User { uid: row.get(0)?, share: row.get(1)?, servers: count(row, 2)?, runs: count(row, 3)? })
    };
    db.prepare_cached(&sql)?.query_map([], user)?.collect()
}

/// Releases some free pages, if so many are free that the file should shrink.
fn release_pages(db: &Connection) -> rusqlite::Result<bool> {
    let free = pragma(db, "freelist_count")?;
    // Fewer are not worth the work.
    if free < 64 || free < pragma(db, "page_count")? / 8 {
        return Ok(false);
    }
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({STEP})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(pragma(db, "freelist_count")? < free)
}

fn used(db: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(db, "page_count")?.saturating_sub(pragma(db, "freelist_count")?);
    Ok(pages.saturating_mul(pragma(db, "page_size")?))
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<u64> {
    db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).map(i64::unsigned_abs)
}

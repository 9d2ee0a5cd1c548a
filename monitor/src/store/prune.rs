//! Limits on the store by age, by user and by size. Rows are deleted in small steps: the oldest first, of the user with
//! the most.
//!
//! Never deleted are: the row with the last number of each remembered key, tracked servers and their runs, runs that
//! have not ended, and this daemon.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::Duration,
};

use rusqlite::{Connection, ToSql, params};

use super::column::int;
use orphand_core::model::Share;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What ended longer ago is deleted.
    pub age: Duration,
    /// The size of the file in bytes, without its free pages.
    pub bytes: u64,
    /// Ended runs and servers of one user.
    pub rows: u64,
}

impl Default for Limits {
    /// 90 days, 64 MiB, and 16,384 runs and servers of one user.
    fn default() -> Self {
        Self { age: Duration::from_secs(90 * 24 * 60 * 60), bytes: 64 << 20, rows: 16_384 }
    }
}

/// How many rows are deleted in one step. The daemon may have to wait for a step, about a millisecond.
const STEP_ROWS: u64 = 64;
/// Between two steps, to let the daemon write: SQLite's write lock is not fair.
const PAUSE: Duration = Duration::from_millis(1);
/// Rows that are deleted of a user before the user with the most is looked for again.
const AT_ONCE: u64 = 16 * STEP_ROWS;
/// Free pages that are released to the file system in one step.
const PAGES: u64 = 64;
/// How many losses, and lives of the daemon, are kept.
const HOST_ROWS: i64 = 4096;

/// SQL that deletes the oldest rows: ?1 is the time before which they ended, ?2 the number of rows.
const SERVERS: &str =
    "DELETE FROM servers WHERE id IN (SELECT id FROM servers WHERE ended < ?1 ORDER BY ended LIMIT ?2)";
const LOSSES: &str =
    "DELETE FROM losses WHERE at IN (SELECT at FROM losses WHERE at < ?1 ORDER BY at LIMIT ?2)";
const DAEMONS: &str = "DELETE FROM daemons WHERE id IN (SELECT id FROM daemons WHERE started < ?1
    AND id < (SELECT max(id) FROM daemons) ORDER BY id LIMIT ?2)";
const RUNS: &str = "DELETE FROM runs WHERE (key, generation) IN (SELECT r.key, r.generation FROM runs r WHERE r.ended < ?1
    AND ((SELECT forgotten FROM keys k WHERE k.id = r.key) IS NOT NULL
         OR r.generation < (SELECT max(generation) FROM runs m WHERE m.key = r.key))
    AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.ended IS NULL AND s.key = r.key AND s.generation = r.generation)
    ORDER BY r.ended LIMIT ?2)";
/// Deletes keys that are remembered no more and to which nothing refers.
const KEYS: &str =
    "DELETE FROM keys WHERE id IN (SELECT id FROM keys k WHERE forgotten IS NOT NULL AND id > ?1
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.key = k.id)
    AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.key = k.id) LIMIT ?2)";

/// Deletes what exceeds the limits. `now` is in microseconds of the wall clock.
pub(super) fn prune(db: &Connection, limits: Limits, now: i64) -> rusqlite::Result<()> {
    let mut pruner = Pruner { db };
    let too_old = now.saturating_sub(i64::try_from(limits.age.as_micros()).unwrap_or(i64::MAX));
    for oldest in [SERVERS, LOSSES, DAEMONS, RUNS] {
        pruner.delete(oldest, too_old, u64::MAX)?;
    }
    for (oldest, limit) in [
        (LOSSES, "SELECT at FROM losses ORDER BY at DESC LIMIT 1 OFFSET ?1"),
        (DAEMONS, "SELECT started FROM daemons ORDER BY id DESC LIMIT 1 OFFSET ?1"),
    ] {
        let before = db.prepare_cached(limit)?.query([HOST_ROWS - 1])?.next()?.map(|row| row.get(0));
        pruner.delete(oldest, before.transpose()?.unwrap_or(i64::MIN), u64::MAX)?;
    }
    for (uid, rows) in users(db)? {
        pruner.delete_of_user(uid, rows, rows.all().saturating_sub(limits.rows))?;
    }
    pruner.shrink(limits.bytes)?;
    pruner.delete(KEYS, i64::MIN, u64::MAX)?;
    pruner.release_pages()
}

struct Pruner<'p> {
    db: &'p Connection,
}

impl Pruner<'_> {
    /// Deletes at most so many of the oldest rows, step by step. `which` is the first parameter. Returns how many.
    fn delete(&mut self, sql: &str, which: impl ToSql, most: u64) -> rusqlite::Result<u64> {
        let mut deleted = 0;
        while deleted < most {
            let few = int(STEP_ROWS.min(most - deleted));
            let step = self.db.prepare_cached(sql)?.execute(params![which, few])?;
            thread::sleep(PAUSE);
            deleted += step as u64;
            if step == 0 {
                break;
            }
        }
        Ok(deleted)
    }

    /// Deletes at most so many ended rows of a user: of the table with more of them first.
    fn delete_of_user(&mut self, uid: Option<i64>, mut rows: UserRows, most: u64) -> rusqlite::Result<u64> {
        let of_user = |sql: &str| sql.replacen("ended < ?1", "ended < 9223372036854775807 AND uid IS ?1", 1);
        let mut deleted = 0;
        while deleted < most {
            let few = (most - deleted).min(AT_ONCE);
            let servers_first = rows.servers >= rows.runs;
            let order = if servers_first { [SERVERS, RUNS] } else { [RUNS, SERVERS] };
            let mut now = self.delete(&of_user(order[0]), uid, few)?;
            let mut of_servers = servers_first;
            if now == 0 {
                now = self.delete(&of_user(order[1]), uid, few)?;
                of_servers = !servers_first;
            }
            if now == 0 {
                break;
            }
            let count = if of_servers { &mut rows.servers } else { &mut rows.runs };
            *count = count.saturating_sub(now);
            deleted += now;
        }
        Ok(deleted)
    }

    /// Deletes until the file is not larger than this: of the user with the most rows in the share with the most rows. A
    /// share below the average never loses rows because of others, even if they cannot be deleted there.
    fn shrink(&mut self, bytes: u64) -> rusqlite::Result<()> {
        let mut done = BTreeSet::new();
        while used(self.db)? > bytes {
            let users = users(self.db)?;
            let mut of_share: BTreeMap<Option<Share>, u64> = BTreeMap::new();
            for (uid, rows) in &users {
                *of_share.entry(share(*uid)).or_default() += rows.all();
            }
            let (all, shares) = (of_share.values().sum::<u64>(), of_share.len() as u64);
            let ranked = users
                .into_iter()
                .map(|(uid, rows)| (of_share.get(&share(uid)).copied(), rows.all(), uid, rows));
            let large = ranked.filter(|(of_share, _, uid, _)| {
                of_share.is_some_and(|rows| rows.saturating_mul(shares) >= all) && !done.contains(uid)
            });
            let Some((_, _, uid, rows)) = large.max_by_key(|(of_share, all, uid, _)| (*of_share, *all, *uid))
            else {
                break;
            };
            let mut deleted = 0;
            while deleted < AT_ONCE && used(self.db)? > bytes {
                match self.delete_of_user(uid, rows, STEP_ROWS)? {
                    0 => break,
                    few => deleted += few,
                }
            }
            if deleted == 0 {
                done.insert(uid);
            }
        }
        for oldest in [LOSSES, DAEMONS] {
            while used(self.db)? > bytes && self.delete(oldest, i64::MAX, STEP_ROWS)? > 0 {}
        }
        Ok(())
    }

    /// Releases free pages, if so many are free that the file should shrink.
    fn release_pages(&mut self) -> rusqlite::Result<()> {
        let free = || pragma(self.db, "freelist_count");
        let mut before = u64::MAX;
        while free()? < before && free()? >= PAGES && free()? >= pragma(self.db, "page_count")? / 8 {
            before = free()?;
            let mut statement = self.db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// How many ended rows a user has.
#[derive(Clone, Copy, Debug, Default)]
struct UserRows {
    servers: u64,
    runs: u64,
}

impl UserRows {
    const fn all(self) -> u64 {
        self.servers + self.runs
    }
}

/// The share that a user belongs to; rows without a user are one share.
fn share(uid: Option<i64>) -> Option<Share> {
    uid.and_then(|uid| u32::try_from(uid).ok()).map(Share::of)
}

fn users(db: &Connection) -> rusqlite::Result<BTreeMap<Option<i64>, UserRows>> {
    let mut users = BTreeMap::new();
    let mut statement = db.prepare_cached(
        "SELECT uid, sum(servers), sum(runs) FROM (
           SELECT uid, count(*) AS servers, 0 AS runs FROM servers WHERE ended IS NOT NULL GROUP BY uid
           UNION ALL SELECT uid, 0, count(ended) FROM runs GROUP BY uid) GROUP BY uid",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        users.insert(row.get(0)?, UserRows { servers: count(1)?, runs: count(2)? });
    }
    Ok(users)
}

/// The used part of the file in bytes.
fn used(db: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(db, "page_count")?.saturating_sub(pragma(db, "freelist_count")?);
    Ok(pages.saturating_mul(pragma(db, "page_size")?))
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<u64> {
    db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).map(i64::unsigned_abs)
}

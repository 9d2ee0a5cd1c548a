//! Limits on the store by age, by user and by size. Rows are deleted in small steps: the oldest first, of the
//! user with the most.
//!
//! Never deleted are: the row with the last number of each remembered key, tracked servers and their runs,
//! runs that have not ended, and this daemon.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rusqlite::{Connection, params};

use super::column::int;
use orphand_core::model::Share;

/// The limits of a store.
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
const STEP_ROWS: i64 = 64;
/// Steps before the user with the most rows is determined again.
const STEPS: usize = 16;
/// Free pages that are released to the file system in one step.
const PAGES: u32 = 64;
/// How many losses, and lives of the daemon, are kept.
const HOST_ROWS: i64 = 4096;
/// How many unused rows of `keys` are looked up at once.
const KEYS: i64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    Servers,
    Losses,
    Daemons,
    Runs,
}

impl Table {
    const ALL: [Self; 4] = [Self::Servers, Self::Losses, Self::Daemons, Self::Runs];

    /// SQL that deletes the oldest rows: ?1 is the time before which they ended, ?2 the number of rows.
    const fn oldest(self) -> &'static str {
        match self {
            Self::Servers => {
                "DELETE FROM servers WHERE id IN (SELECT id FROM servers WHERE ended < ?1 ORDER BY ended LIMIT ?2)"
            }
            Self::Losses => {
                "DELETE FROM losses WHERE at IN (SELECT at FROM losses WHERE at < ?1 ORDER BY at LIMIT ?2)"
            }
            Self::Daemons => {
                "DELETE FROM daemons WHERE id IN (SELECT id FROM daemons WHERE started < ?1
                   AND id < (SELECT max(id) FROM daemons) ORDER BY id LIMIT ?2)"
            }
            Self::Runs => concat!(
                "DELETE FROM runs WHERE (key, generation) IN (SELECT r.key, r.generation FROM runs r WHERE r.ended < ?1 AND ",
                "((SELECT forgotten FROM keys k WHERE k.id = r.key) IS NOT NULL ",
                "OR r.generation < (SELECT max(generation) FROM runs m WHERE m.key = r.key)) ",
                "AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.ended IS NULL AND s.key = r.key AND s.generation = r.generation) ",
                "ORDER BY r.ended LIMIT ?2)"
            ),
        }
    }
}

/// What to delete next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The oldest rows of a table that ended before this time.
    Oldest(Table, i64),
    /// The oldest rows of a user.
    OfUser(Table, Option<i64>),
    /// Rows of `keys` that nothing refers to.
    Keys(Vec<i64>),
    /// Release free pages to the file system.
    Vacuum,
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

/// Selects rows and deletes them.
#[derive(Debug, Default)]
pub(super) struct Pruner {
    /// Steps without effect since the last pause.
    without_effect: BTreeSet<Step>,
    /// Steps since the last selection.
    steps: usize,
    /// How many rows of the selected user exceed the limit; `None` if the size of the file is the reason.
    excess: Option<u64>,
    /// Whether `keys` was searched since the last row was deleted.
    keys_done: bool,
}

impl Pruner {
    /// Selects what to do next; `None` if all limits are met as far as possible. `now` is in microseconds of
    /// the wall clock. Only reads.
    pub(super) fn choose(
        &mut self,
        db: &Connection,
        limits: Limits,
        now: i64,
    ) -> rusqlite::Result<Option<Step>> {
        self.steps = 0;
        let age = i64::try_from(limits.age.as_micros()).unwrap_or(i64::MAX);
        let too_old = |table| Step::Oldest(table, now.saturating_sub(age));
        let mut found = Table::ALL.map(too_old).into_iter().find(|next| !self.without_effect.contains(next));
        if found.is_none() {
            found = self.over_limit(db, limits)?;
        }
        if found.is_none() && !self.keys_done {
            found = self.keys(db)?;
        }
        if found.is_none() && has_free_pages(db)? && !self.without_effect.contains(&Step::Vacuum) {
            found = Some(Step::Vacuum);
        }
        if found.is_none() {
            self.without_effect.clear();
        }
        Ok(found)
    }

    /// Deletes the next few rows. Returns whether to continue with the same step.
    pub(super) fn step(&mut self, db: &Connection, limits: Limits, next: &Step) -> rusqlite::Result<bool> {
        let deleted = match next {
            Step::Oldest(table, before) => {
                db.prepare_cached(table.oldest())?.execute(params![before, STEP_ROWS])?
            }
            Step::OfUser(table, uid) => {
                // A limit newer than every row.
                let sql =
                    table.oldest().replacen("ended < ?1", "ended < 9223372036854775807 AND uid IS ?1", 1);
                let most = self.excess.map_or(STEP_ROWS, |rows| STEP_ROWS.min(int(rows)));
                let deleted = db.prepare_cached(&sql)?.execute(params![uid, most])?;
                self.excess = self.excess.map(|rows| rows.saturating_sub(deleted as u64));
                deleted
            }
            Step::Keys(ids) => {
                let at = self.steps * usize::try_from(STEP_ROWS).unwrap_or_default();
                let few = ids.iter().skip(at).take(usize::try_from(STEP_ROWS).unwrap_or_default());
                let mut delete =
                    db.prepare_cached("DELETE FROM keys WHERE id = ?1 AND forgotten IS NOT NULL")?;
                let mut deleted = 0;
                for id in few {
                    deleted += delete.execute([id])?;
                }
                self.steps += 1;
                return Ok(deleted > 0);
            }
            Step::Vacuum => {
                self.without_effect.insert(Step::Vacuum);
                let before = pragma(db, "freelist_count")?;
                release_pages(db)?;
                return Ok(pragma(db, "freelist_count")? < before && has_free_pages(db)?);
            }
        };
        if deleted == 0 {
            self.without_effect.insert(next.clone());
            return Ok(false);
        }
        self.keys_done = false;
        self.steps += 1;
        let more = match (next, self.excess) {
            (Step::OfUser(..), Some(rows)) => rows > 0,
            (Step::OfUser(..), None) => used(db)? > limits.bytes,
            _ => true,
        };
        Ok(more && self.steps < STEPS)
    }

    fn over_limit(&mut self, db: &Connection, limits: Limits) -> rusqlite::Result<Option<Step>> {
        for (table, count) in [
            (Table::Losses, "SELECT at FROM losses ORDER BY at DESC LIMIT 1 OFFSET ?1"),
            (Table::Daemons, "SELECT started FROM daemons ORDER BY id DESC LIMIT 1 OFFSET ?1"),
        ] {
            let mut statement = db.prepare_cached(count)?;
            let before = statement.query([HOST_ROWS - 1])?.next()?.map(|row| row.get(0)).transpose()?;
            let next = before.map(|before| Step::Oldest(table, before));
            if let Some(next) = next.filter(|next| !self.without_effect.contains(next)) {
                return Ok(Some(next));
            }
        }
        let users = users(db)?;
        let full = used(db)? > limits.bytes;
        let mut of_share: BTreeMap<Option<Share>, u64> = BTreeMap::new();
        for (uid, rows) in &users {
            *of_share.entry(share(*uid)).or_default() += rows.all();
        }
        // Among users over the limit, the one with the most rows in the share with the most rows comes first.
        // A share below the average never loses rows because of others, even if they cannot be deleted there.
        let all: u64 = of_share.values().sum();
        let is_large = |uid: Option<i64>| {
            of_share.get(&share(uid)).is_some_and(|rows| rows.saturating_mul(of_share.len() as u64) >= all)
        };
        let too_much =
            |uid: Option<i64>, rows: &UserRows| rows.all() > limits.rows || (full && is_large(uid));
        let mut order: Vec<_> = users.iter().filter(|(uid, rows)| too_much(**uid, rows)).collect();
        order.sort_by_key(|(uid, rows)| {
            std::cmp::Reverse((of_share.get(&share(**uid)).copied(), rows.all(), **uid))
        });
        for (uid, rows) in order {
            let tables = if rows.servers >= rows.runs {
                [Table::Servers, Table::Runs]
            } else {
                [Table::Runs, Table::Servers]
            };
            let candidates = tables.map(|table| Step::OfUser(table, *uid));
            if let Some(next) = candidates.into_iter().find(|next| !self.without_effect.contains(next)) {
                self.excess = rows.all().checked_sub(limits.rows).filter(|rows| *rows > 0);
                return Ok(Some(next));
            }
        }
        let of_host = [Table::Losses, Table::Daemons].map(|table| Step::Oldest(table, i64::MAX));
        Ok(of_host.into_iter().find(|next| full && !self.without_effect.contains(next)))
    }

    fn keys(&mut self, db: &Connection) -> rusqlite::Result<Option<Step>> {
        let ids: Vec<i64> = db
            .prepare_cached(
                "SELECT id FROM keys k WHERE forgotten IS NOT NULL
                   AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.key = k.id)
                   AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.key = k.id) LIMIT ?1",
            )?
            .query_map([KEYS], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.keys_done = ids.is_empty();
        Ok(Some(Step::Keys(ids)).filter(|_| !self.keys_done))
    }
}

/// The share that a user belongs to; rows without a user are one share.
fn share(uid: Option<i64>) -> Option<Share> {
    uid.and_then(|uid| u32::try_from(uid).ok()).map(Share::of)
}

fn users(db: &Connection) -> rusqlite::Result<BTreeMap<Option<i64>, UserRows>> {
    let mut users: BTreeMap<Option<i64>, UserRows> = BTreeMap::new();
    for (sql, is_run) in [
        ("SELECT uid, count(*) FROM servers WHERE ended IS NOT NULL GROUP BY uid", false),
        ("SELECT uid, count(ended) FROM runs GROUP BY uid", true),
    ] {
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let of_user = users.entry(row.get(0)?).or_default();
            let count = row.get::<_, i64>(1)?.unsigned_abs();
            if is_run {
                of_user.runs = count;
            } else {
                of_user.servers = count;
            }
        }
    }
    Ok(users)
}

/// The used part of the file in bytes.
fn used(db: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(db, "page_count")?.saturating_sub(pragma(db, "freelist_count")?);
    Ok(pages.saturating_mul(pragma(db, "page_size")?))
}

/// Whether so many pages are free that the file should shrink.
fn has_free_pages(db: &Connection) -> rusqlite::Result<bool> {
    let free = pragma(db, "freelist_count")?;
    Ok(free >= u64::from(PAGES) && free >= pragma(db, "page_count")? / 8)
}

fn release_pages(db: &Connection) -> rusqlite::Result<()> {
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<u64> {
    let value: i64 = db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?;
    Ok(value.unsigned_abs())
}

//! Bounds by age, by user and by size, in small steps: the oldest goes first, of whoever has the most, never what numbers or
//! verdicts rest on.
//!
//! What stays in any case: the row with the last number of each key that is remembered, servers that are still followed and the
//! runs they are accounted to, runs that have not ended, this daemon.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rusqlite::{Connection, params};

use super::column::int;
use orphand_core::model::Share;

/// What a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What ended longer ago is forgotten.
    pub age: Duration,
    /// Bytes of the file, what is free in it left out.
    pub bytes: u64,
    /// Runs and servers of one user that have ended.
    pub rows: u64,
}

impl Default for Limits {
    /// 90 days, 64 MiB, 16,384 runs and servers of one user.
    fn default() -> Self {
        Self { age: Duration::from_secs(90 * 24 * 60 * 60), bytes: 64 << 20, rows: 16_384 }
    }
}

/// Rows deleted at once: what the daemon may have to wait for, a millisecond or so.
const ROWS: i64 = 64;
/// Steps before it is looked anew who has the most.
const STEPS: usize = 16;
/// Pages given back to the file system at once.
const PAGES: u32 = 64;
/// Losses, and lives of the daemon, that are kept.
const OF_HOST: i64 = 4096;
/// Rows of `keys` without a past that are looked for at once.
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

    /// Deletes the oldest rows; ?1 is the time they have to be older than, ?2 how many.
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

/// What is to be deleted next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// The oldest rows of a table, those before this time.
    Oldest(Table, i64),
    /// The oldest rows of a user.
    OfUser(Table, Option<i64>),
    /// Keys of which nothing is left.
    Keys(Vec<i64>),
    /// Pages.
    GiveBack,
}

/// What one user has in the file that has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    servers: u64,
    runs: u64,
}

impl Rows {
    const fn all(self) -> u64 {
        self.servers + self.runs
    }
}

/// Chooses and deletes.
#[derive(Debug, Default)]
pub(super) struct Pruner {
    /// What had nothing to delete, since there was a pause.
    stuck: BTreeSet<Work>,
    /// Steps since the last choice.
    steps: usize,
    /// Rows of the chosen user that are too many; those of a file that is too large are not counted.
    surplus: Option<u64>,
    /// Keys were looked through since the last row was deleted.
    keys_done: bool,
}

impl Pruner {
    /// What to do next; nothing once all bounds are kept, as far as they can be. `now` is in microseconds of the wall clock. Only reads.
    pub(super) fn choose(
        &mut self,
        db: &Connection,
        limits: Limits,
        now: i64,
    ) -> rusqlite::Result<Option<Work>> {
        self.steps = 0;
        let age = i64::try_from(limits.age.as_micros()).unwrap_or(i64::MAX);
        let too_old = |table| Work::Oldest(table, now.saturating_sub(age));
        let mut found = Table::ALL.map(too_old).into_iter().find(|work| !self.stuck.contains(work));
        if found.is_none() {
            found = self.too_many(db, limits)?;
        }
        if found.is_none() && !self.keys_done {
            found = self.keys(db)?;
        }
        if found.is_none() && has_room_to_give(db)? && !self.stuck.contains(&Work::GiveBack) {
            found = Some(Work::GiveBack);
        }
        if found.is_none() {
            self.stuck.clear();
        }
        Ok(found)
    }

    /// Deletes the next few rows; whether to go on with the same.
    pub(super) fn step(&mut self, db: &Connection, limits: Limits, work: &Work) -> rusqlite::Result<bool> {
        let deleted = match work {
            Work::Oldest(table, before) => {
                db.prepare_cached(table.oldest())?.execute(params![before, ROWS])?
            }
            Work::OfUser(table, uid) => {
                // Newer than everything: all that has ended is older.
                let sql =
                    table.oldest().replacen("ended < ?1", "ended < 9223372036854775807 AND uid IS ?1", 1);
                let most = self.surplus.map_or(ROWS, |rows| ROWS.min(int(rows)));
                let deleted = db.prepare_cached(&sql)?.execute(params![uid, most])?;
                self.surplus = self.surplus.map(|rows| rows.saturating_sub(deleted as u64));
                deleted
            }
            Work::Keys(ids) => {
                let at = self.steps * usize::try_from(ROWS).unwrap_or_default();
                let few = ids.iter().skip(at).take(usize::try_from(ROWS).unwrap_or_default());
                let mut delete =
                    db.prepare_cached("DELETE FROM keys WHERE id = ?1 AND forgotten IS NOT NULL")?;
                let mut deleted = 0;
                for id in few {
                    deleted += delete.execute([id])?;
                }
                self.steps += 1;
                return Ok(deleted > 0);
            }
            Work::GiveBack => {
                self.stuck.insert(Work::GiveBack);
                let before = pragma(db, "freelist_count")?;
                give_back(db)?;
                return Ok(pragma(db, "freelist_count")? < before && has_room_to_give(db)?);
            }
        };
        if deleted == 0 {
            self.stuck.insert(work.clone());
            return Ok(false);
        }
        self.keys_done = false;
        self.steps += 1;
        let more = match (work, self.surplus) {
            (Work::OfUser(..), Some(rows)) => rows > 0,
            (Work::OfUser(..), None) => used(db)? > limits.bytes,
            _ => true,
        };
        Ok(more && self.steps < STEPS)
    }

    fn too_many(&mut self, db: &Connection, limits: Limits) -> rusqlite::Result<Option<Work>> {
        for (table, count) in [
            (Table::Losses, "SELECT at FROM losses ORDER BY at DESC LIMIT 1 OFFSET ?1"),
            (Table::Daemons, "SELECT started FROM daemons ORDER BY id DESC LIMIT 1 OFFSET ?1"),
        ] {
            let mut statement = db.prepare_cached(count)?;
            let before = statement.query([OF_HOST - 1])?.next()?.map(|row| row.get(0)).transpose()?;
            let work = before.map(|before| Work::Oldest(table, before));
            if let Some(work) = work.filter(|work| !self.stuck.contains(work)) {
                return Ok(Some(work));
            }
        }
        let users = users(db)?;
        let full = used(db)? > limits.bytes;
        let mut of_share: BTreeMap<Option<Share>, u64> = BTreeMap::new();
        for (uid, rows) in &users {
            *of_share.entry(share(*uid)).or_default() += rows.all();
        }
        // Of those who have too much, of the share with the most, whoever has the most. Who has less than an equal part never pays
        // for the others, whatever of theirs has to stay.
        let all: u64 = of_share.values().sum();
        let is_large = |uid: Option<i64>| {
            of_share.get(&share(uid)).is_some_and(|rows| rows.saturating_mul(of_share.len() as u64) >= all)
        };
        let too_much = |uid: Option<i64>, rows: &Rows| rows.all() > limits.rows || (full && is_large(uid));
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
            let works = tables.map(|table| Work::OfUser(table, *uid));
            if let Some(work) = works.into_iter().find(|work| !self.stuck.contains(work)) {
                self.surplus = rows.all().checked_sub(limits.rows).filter(|rows| *rows > 0);
                return Ok(Some(work));
            }
        }
        let of_host = [Table::Losses, Table::Daemons].map(|table| Work::Oldest(table, i64::MAX));
        Ok(of_host.into_iter().find(|work| full && !self.stuck.contains(work)))
    }

    fn keys(&mut self, db: &Connection) -> rusqlite::Result<Option<Work>> {
        let ids: Vec<i64> = db
            .prepare_cached(
                "SELECT id FROM keys k WHERE forgotten IS NOT NULL
                   AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.key = k.id)
                   AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.key = k.id) LIMIT ?1",
            )?
            .query_map([KEYS], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.keys_done = ids.is_empty();
        Ok(Some(Work::Keys(ids)).filter(|_| !self.keys_done))
    }
}

/// Whose share it counts for; what is nobody's is one share.
fn share(uid: Option<i64>) -> Option<Share> {
    uid.and_then(|uid| u32::try_from(uid).ok()).map(Share::of)
}

fn users(db: &Connection) -> rusqlite::Result<BTreeMap<Option<i64>, Rows>> {
    let mut users: BTreeMap<Option<i64>, Rows> = BTreeMap::new();
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

/// Bytes in use.
fn used(db: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(db, "page_count")?.saturating_sub(pragma(db, "freelist_count")?);
    Ok(pages.saturating_mul(pragma(db, "page_size")?))
}

/// Whether so much of the file is free that it is worth shrinking it.
fn has_room_to_give(db: &Connection) -> rusqlite::Result<bool> {
    let free = pragma(db, "freelist_count")?;
    Ok(free >= u64::from(PAGES) && free >= pragma(db, "page_count")? / 8)
}

fn give_back(db: &Connection) -> rusqlite::Result<()> {
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<u64> {
    let value: i64 = db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?;
    Ok(value.unsigned_abs())
}

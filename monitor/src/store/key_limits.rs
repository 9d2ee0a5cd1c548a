//! Removes keys that exceed the limits, as the engine does in memory: of each user, those whose last run
//! ended first.
//!
//! The engine reports forgotten keys while it runs. But a file of another version, or one whose last facts
//! were lost, may contain any number of keys; this is corrected before anything is read.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use rusqlite::{Connection, params};

use orphand_core::model::{KEYS_OF_USER, Share};

/// The most keys of all users that are remembered at the start.
const KEYS_OF_ALL: usize = 1024;

/// Marks the keys that exceed the limits as forgotten at `now` (microseconds of the wall clock). Keys with
/// something alive stay.
pub(super) fn enforce(db: &Connection, now: i64) -> rusqlite::Result<()> {
    let known: i64 =
        db.query_row("SELECT count(*) FROM keys WHERE forgotten IS NULL", [], |row| row.get(0))?;
    if usize::try_from(known).is_ok_and(|known| known <= KEYS_OF_USER) {
        return Ok(());
    }
    let mut change = db.prepare("UPDATE keys SET forgotten = ?2 WHERE id = ?1")?;
    for key in beyond_limits(ended_keys(db)?) {
        change.execute(params![key, now])?;
    }
    Ok(())
}

/// A key without anything alive: its row id, the user of its last run, and when that ended.
struct EndedKey {
    key: i64,
    uid: u32,
    ended: i64,
}

fn ended_keys(db: &Connection) -> rusqlite::Result<Vec<EndedKey>> {
    // With max(), SQLite takes the other columns from the same row.
    db.prepare(
        "SELECT r.key, uid, coalesce(ended, 0), max(generation), sum(ended IS NULL) AS lives
         FROM runs r JOIN keys k ON k.id = r.key WHERE k.forgotten IS NULL
         GROUP BY r.key HAVING lives = 0
                AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.key = r.key AND s.ended IS NULL)",
    )?
    .query_map([], |row| Ok(EndedKey { key: row.get(0)?, uid: row.get(1)?, ended: row.get(2)? }))?
    .collect()
}

/// The keys that exceed a user's limit or the limit of all users. The latest key of every share stays before
/// any share's second.
fn beyond_limits(mut all: Vec<EndedKey>) -> BTreeSet<i64> {
    all.sort_unstable_by_key(|one| (Reverse(one.ended), Reverse(one.key)));
    let mut of_user: BTreeMap<u32, usize> = BTreeMap::new();
    let mut of_share: BTreeMap<Share, usize> = BTreeMap::new();
    let mut excess = BTreeSet::new();
    let mut ranked = Vec::new();
    for EndedKey { key, uid, ended } in all {
        let of_user = of_user.entry(uid).or_default();
        *of_user += 1;
        if *of_user > KEYS_OF_USER {
            excess.insert(key);
            continue;
        }
        let rank = of_share.entry(Share::of(uid)).or_default();
        *rank += 1;
        ranked.push((*rank, Reverse(ended), key));
    }
    ranked.sort_unstable();
    excess.extend(ranked.into_iter().skip(KEYS_OF_ALL).map(|(_, _, key)| key));
    excess
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(uid: u32, first: i64, number: i64) -> impl Iterator<Item = EndedKey> {
        (first..first + number).map(move |key| EndedKey { key, uid, ended: key })
    }

    #[test]
    fn each_user_has_room_and_nobody_takes_anothers() {
        assert!(beyond_limits(keys(1000, 0, 64).collect()).is_empty());
        let lost = beyond_limits(keys(1000, 0, 64).chain(keys(1001, 100, 70)).collect());
        assert_eq!(lost, (100..106).collect());
    }

    #[test]
    fn a_range_of_users_is_one() {
        // They ended later than those of the other user, each with a user id of its own.
        let many = (0..60_000_u32).map(|n| {
            let later = 1000 + i64::from(n);
            EndedKey { key: later, uid: 100_000 + n, ended: later }
        });
        let lost = beyond_limits(keys(1000, 0, 64).chain(many).collect());
        assert_eq!(lost.len(), 60_064 - KEYS_OF_ALL);
        assert!(lost.iter().all(|key| *key >= 1000));
    }
}

//! Keys that there is no room for any more: as in memory, each user's own that ended first.
//!
//! The engine says so while it runs. A file that another version wrote, or whose last words were lost, may have any number of
//! them: that is settled before anything is read.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use rusqlite::{Connection, params};

use orphand_core::model::{KEYS_OF_USER, Share};

/// Of all users: keys that are remembered at the start.
const KEYS_OF_ALL: usize = 1024;

/// Forgets what is too much, at `now` (microseconds of the wall clock). Never a key with something living.
pub(super) fn forget(db: &Connection, now: i64) -> rusqlite::Result<()> {
    let known: i64 =
        db.query_row("SELECT count(*) FROM keys WHERE forgotten IS NULL", [], |row| row.get(0))?;
    if usize::try_from(known).is_ok_and(|known| known <= KEYS_OF_USER) {
        return Ok(());
    }
    let mut change = db.prepare("UPDATE keys SET forgotten = ?2 WHERE id = ?1")?;
    for key in surplus(over(db)?) {
        change.execute(params![key, now])?;
    }
    Ok(())
}

/// A key of which nothing lives: its row, whose last run it was, when that ended.
struct Over {
    key: i64,
    uid: u32,
    ended: i64,
}

fn over(db: &Connection) -> rusqlite::Result<Vec<Over>> {
    // With max() the other columns are those of its row.
    db.prepare(
        "SELECT r.key, uid, coalesce(ended, 0), max(generation), sum(ended IS NULL) AS lives
         FROM runs r JOIN keys k ON k.id = r.key WHERE k.forgotten IS NULL
         GROUP BY r.key HAVING lives = 0
                AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.key = r.key AND s.ended IS NULL)",
    )?
    .query_map([], |row| Ok(Over { key: row.get(0)?, uid: row.get(1)?, ended: row.get(2)? }))?
    .collect()
}

/// Those beyond each user's room and the room of all: each share's latest come before anybody's earlier ones.
fn surplus(mut all: Vec<Over>) -> BTreeSet<i64> {
    all.sort_unstable_by_key(|one| (Reverse(one.ended), Reverse(one.key)));
    let mut of_user: BTreeMap<u32, usize> = BTreeMap::new();
    let mut of_share: BTreeMap<Share, usize> = BTreeMap::new();
    let mut surplus = BTreeSet::new();
    let mut ranked = Vec::new();
    for Over { key, uid, ended } in all {
        let of_user = of_user.entry(uid).or_default();
        *of_user += 1;
        if *of_user > KEYS_OF_USER {
            surplus.insert(key);
            continue;
        }
        let rank = of_share.entry(Share::of(uid)).or_default();
        *rank += 1;
        ranked.push((*rank, Reverse(ended), key));
    }
    ranked.sort_unstable();
    surplus.extend(ranked.into_iter().skip(KEYS_OF_ALL).map(|(_, _, key)| key));
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(uid: u32, first: i64, number: i64) -> impl Iterator<Item = Over> {
        (first..first + number).map(move |key| Over { key, uid, ended: key })
    }

    #[test]
    fn each_user_has_room_and_nobody_takes_anothers() {
        assert!(surplus(keys(1000, 0, 64).collect()).is_empty());
        let lost = surplus(keys(1000, 0, 64).chain(keys(1001, 100, 70)).collect());
        assert_eq!(lost, (100..106).collect());
    }

    #[test]
    fn a_range_of_users_is_one() {
        // Later than the honest ones, each with a number of its own.
        let many = (0..60_000_u32).map(|n| {
            let later = 1000 + i64::from(n);
            Over { key: later, uid: 100_000 + n, ended: later }
        });
        let lost = surplus(keys(1000, 0, 64).chain(many).collect());
        assert_eq!(lost.len(), 60_064 - KEYS_OF_ALL);
        assert!(lost.iter().all(|key| *key >= 1000));
    }
}

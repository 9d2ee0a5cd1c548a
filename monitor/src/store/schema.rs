//! The tables, and how a row becomes a value: SQLite takes facts apart and puts what is read together, both as JSON of the
//! model. A statement that reads has one column, the JSON of one value; a row that is no such value is damage.
//!
//! Times are microseconds of the wall clock since 1970, as the daemon that wrote them saw it;
//! `daemons.offset_ns` leads back to `CLOCK_BOOTTIME`. A file of an earlier version is set aside and copied into a
//! new one, column by column, as a damaged one is (`opening`).

use std::path::Path;

use rusqlite::{Connection, Params, Row, types::Type};
use serde::de::DeserializeOwned;

use super::StoreError;
use orphand_core::model::BootTime;

/// The version of a file with these tables (`user_version`).
pub(super) const VERSION: u32 = 11;

/// The earliest version whose rows mean what they mean here.
pub(super) const READABLE: u32 = 3;

const TABLES: &str = "
-- /proc/sys/kernel/random/boot_id: process identities mean something within one boot only. When the first daemon of all
-- was started, in nanoseconds since boot, is in the row of its boot; in later boots nothing is from before it.
CREATE TABLE boots (id INTEGER PRIMARY KEY, boot TEXT NOT NULL UNIQUE, first_start INTEGER);
-- Whose runs are numbered together, as JSON. A key that is remembered no more keeps what is left of its past; if it comes
-- back, that is another row.
CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL, forgotten INTEGER);
CREATE UNIQUE INDEX keys_remembered ON keys (key) WHERE forgotten IS NULL;
CREATE TABLE daemons (
    id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, version TEXT NOT NULL, offset_ns INTEGER NOT NULL,
    started INTEGER NOT NULL, stopped INTEGER
);
CREATE TABLE runs (
    key INTEGER NOT NULL, generation INTEGER NOT NULL, agent TEXT NOT NULL, uid INTEGER NOT NULL,
    pid INTEGER NOT NULL, start INTEGER NOT NULL, invocation TEXT, alive INTEGER NOT NULL,
    boot INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER,
    -- What its agents left that is no server: how many branches of processes, and their resident memory then.
    leftovers INTEGER, leftover_bytes INTEGER,
    hints TEXT, -- JSON
    PRIMARY KEY (key, generation)
) WITHOUT ROWID;
CREATE INDEX runs_of_user ON runs (uid, ended);
CREATE TABLE servers (
    id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL,
    name TEXT NOT NULL, rule TEXT NOT NULL, processes TEXT, -- `1234@229468 1240@229470`
    owner_pid INTEGER, owner_start INTEGER, owner_name TEXT, owner_uid INTEGER, owner_implied INTEGER,
    key INTEGER, generation INTEGER, since INTEGER NOT NULL,
    -- Since when it is an orphan, or unproven: one of both, as the last verdict said.
    judged INTEGER, evidence TEXT, guards TEXT, rss INTEGER, pss INTEGER,
    unproven INTEGER, doubts TEXT,
    reaping INTEGER, asked_by TEXT, failed_pid INTEGER, failure TEXT,
    ended INTEGER, how TEXT, signal TEXT, took_ms INTEGER, freed INTEGER, freed_pss INTEGER,
    exit_code INTEGER, exit_signal INTEGER, killed_by TEXT, -- JSON
    uid INTEGER, start_known TEXT, hints TEXT, -- JSON, both
    UNIQUE (boot, pid, start)
);
CREATE INDEX servers_followed ON servers (boot) WHERE ended IS NULL;
CREATE INDEX servers_ended ON servers (ended) WHERE ended IS NOT NULL;
CREATE INDEX servers_of_user ON servers (uid, ended) WHERE ended IS NOT NULL;
CREATE INDEX servers_of_run ON servers (key, generation);
-- Each signal, with the verdict of its moment. They go with their server, so its limits are theirs.
CREATE TABLE signals (
    server INTEGER NOT NULL, at INTEGER NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL, signal TEXT NOT NULL,
    program TEXT NOT NULL, asked INTEGER NOT NULL, evidence TEXT, doubts TEXT,
    PRIMARY KEY (server, at, pid, start, signal)
) WITHOUT ROWID;
CREATE INDEX signals_in_order ON signals (at);
CREATE TRIGGER signals_of_server AFTER DELETE ON servers BEGIN DELETE FROM signals WHERE server = old.id; END;
CREATE TABLE losses (
    at INTEGER NOT NULL, forks INTEGER NOT NULL, execs INTEGER NOT NULL, exits INTEGER NOT NULL,
    setsids INTEGER NOT NULL, members INTEGER NOT NULL,
    PRIMARY KEY (at, forks, execs, exits, setsids, members)
) WITHOUT ROWID;
";

pub(super) fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Whether a file has tables. An error if they are those of another version.
pub(super) fn is_made(db: &Connection, file: &Path) -> Result<bool, StoreError> {
    let (path, known) = (file.to_owned(), VERSION);
    match version(db).map_err(|source| StoreError::of("read", file, &source))? {
        0 => Ok(false),
        VERSION => Ok(true),
        version if version > VERSION => Err(StoreError::Newer { path, version, known }),
        version => Err(StoreError::Older { path, version, known }),
    }
}

pub(super) fn create(db: &mut Connection) -> rusqlite::Result<()> {
    if version(db)? == VERSION {
        return Ok(());
    }
    let change = db.transaction()?;
    change.execute_batch(TABLES)?;
    change.pragma_update(None, "user_version", VERSION)?;
    change.commit()
}

pub(super) fn read<T: DeserializeOwned>(
    db: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map(params, |row| from_json(row, 0))?.collect()
}

pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str_or_null()?.unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

/// SQL: a truth value of JSON.
pub(super) fn flag(condition: &str) -> String {
    format!("json(iif({condition}, 'true', 'false'))")
}

/// SQL: a time in a column, as text. NULL stays NULL.
pub(super) fn time(column: &str) -> String {
    format!(
        "(strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000000, 'unixepoch') || printf('.%06dZ', {column} % 1000000))"
    )
}

/// SQL: the [`orphand_core::model::Share`] of the user id in a column.
pub(super) fn share(uid: &str) -> String {
    format!("iif({uid} < 100000, {uid}, 100000 + ({uid} - 100000) / 65536)")
}

/// SQL: the name of a run's agent, of a row of `keys` named `k` and one of `runs` named `r`.
pub(super) const AGENT: &str = "coalesce(nullif(r.agent, ''), k.key->>'$.unit.name', k.key->>'$.agent.name')";

/// SQL: a `RunView`, of the same rows; NULL without a key.
pub(super) fn run_view(generation: &str) -> String {
    format!(
        "json(iif(k.key IS NULL, NULL, json_object('agent', {AGENT}, 'generation', {generation},
            'uid', k.key->>'$.agent.uid', 'unit', k.key->>'$.unit.name',
            'manager', nullif(k.key->>'$.unit.manager', ''), 'invocation_id', r.invocation)))"
    )
}

/// `at` in microseconds of the wall clock since 1970.
pub(super) fn wall_us(at: BootTime, offset_ns: i64) -> i64 {
    let ns = i128::from(at.0) + i128::from(offset_ns);
    i64::try_from(ns / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Share;

    #[test]
    fn shares_are_those_of_the_core() {
        let db = Connection::open_in_memory().unwrap();
        let same = db.prepare(&format!("SELECT {} = {}", share("?1"), share("?2"))).unwrap();
        let mut same = same;
        let uids = [0, 1000, 99_999, 100_000, 165_535, 165_536, u32::MAX - 1, u32::MAX];
        for (one, other) in uids.iter().flat_map(|one| uids.iter().map(move |other| (*one, *other))) {
            let shared: bool = same.query_row([one, other], |row| row.get(0)).unwrap();
            assert_eq!(shared, Share::of(one) == Share::of(other), "{one} {other}");
        }
    }

    #[test]
    fn times_are_told_to_the_microsecond() {
        let db = Connection::open_in_memory().unwrap();
        let at = jiff::Timestamp::from_microsecond(1_785_153_600_000_042).unwrap();
        let sql = format!("SELECT json_quote({})", time("?1"));
        assert_eq!(read::<jiff::Timestamp>(&db, &sql, [at.as_microsecond()]).unwrap(), [at]);
    }
}

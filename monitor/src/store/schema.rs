//! The tables, and the migrations from every earlier version.
//!
//! Times are microseconds of the wall clock since 1970, as the daemon that wrote them saw it;
//! `daemons.offset_ns` leads back to `CLOCK_BOOTTIME`. A migration is never changed after its release; a
//! change is a new migration.

use rusqlite::Connection;

/// The migrations: the n-th leads from version n - 1 to version n (`user_version`).
pub(super) const STEPS: &[&str] =
    &[V1, V2, GONE_GUARDS, SHARES, STARTS, ENDINGS, SIGNALS, FIRST_START, LEFTOVERS, HINTS];

const V1: &str = "
-- /proc/sys/kernel/random/boot_id: process identities mean something within one boot only.
CREATE TABLE boots (id INTEGER PRIMARY KEY, boot TEXT NOT NULL UNIQUE);
-- Whose runs are numbered together, as JSON.
CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE daemons (
    id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, version TEXT NOT NULL, offset_ns INTEGER NOT NULL,
    started INTEGER NOT NULL, stopped INTEGER
);
CREATE TABLE runs (
    key INTEGER NOT NULL, generation INTEGER NOT NULL, agent TEXT NOT NULL, uid INTEGER NOT NULL,
    pid INTEGER NOT NULL, start INTEGER NOT NULL, invocation TEXT, alive INTEGER NOT NULL,
    boot INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER,
    PRIMARY KEY (key, generation)
) WITHOUT ROWID;
CREATE TABLE servers (
    id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL,
    name TEXT NOT NULL, rule TEXT NOT NULL, processes TEXT,
    owner_pid INTEGER, owner_start INTEGER, owner_name TEXT, owner_uid INTEGER, owner_implied INTEGER,
    key INTEGER, generation INTEGER, since INTEGER NOT NULL,
    judged INTEGER, evidence TEXT, guards TEXT, rss INTEGER, pss INTEGER,
    reaping INTEGER, failed_pid INTEGER, failure TEXT,
    ended INTEGER, how TEXT, signal TEXT, took_ms INTEGER, freed INTEGER, freed_pss INTEGER,
    UNIQUE (boot, pid, start)
);
CREATE INDEX servers_followed ON servers (boot) WHERE ended IS NULL;
CREATE INDEX servers_ended ON servers (ended) WHERE ended IS NOT NULL;
CREATE TABLE losses (
    at INTEGER NOT NULL, forks INTEGER NOT NULL, execs INTEGER NOT NULL, exits INTEGER NOT NULL,
    setsids INTEGER NOT NULL, members INTEGER NOT NULL,
    PRIMARY KEY (at, forks, execs, exits, setsids, members)
) WITHOUT ROWID;
";

/// Unproven servers: they are judged and are not orphans.
const V2: &str = "
-- Since when it is unproven, if that is the last verdict on it (then `judged` is NULL), and why.
ALTER TABLE servers ADD COLUMN unproven INTEGER;
ALTER TABLE servers ADD COLUMN doubts TEXT;
";

/// The third migration: some guards of version 1 are doubts today. It is idempotent, because rows that were
/// salvaged from an earlier version need it too.
pub(super) const GONE_GUARDS: &str = "
-- What stays because of such a guard is unproven; what has ended since, or was signalled, was told as an orphan and remains one.
UPDATE servers SET
    doubts = (SELECT json_group_array(iif(value = 'listening', 'clients', 'owner_unknown'))
              FROM json_each(guards) WHERE value IN ('listening', 'weak_evidence')),
    unproven = judged, judged = NULL
WHERE ended IS NULL AND reaping IS NULL AND iif(json_valid(guards),
  EXISTS (SELECT 1 FROM json_each(guards) WHERE value IN ('listening', 'weak_evidence')), 0);
UPDATE servers SET
    guards = (SELECT json_group_array(value) FROM json_each(guards)
              WHERE value NOT IN ('listening', 'weak_evidence', 'detached'))
WHERE iif(json_valid(guards),
  EXISTS (SELECT 1 FROM json_each(guards) WHERE value IN ('listening', 'weak_evidence', 'detached')), 0);
UPDATE servers SET guards = NULL, pss = NULL WHERE unproven IS NOT NULL;
";

/// The fourth migration: limits for each user.
const SHARES: &str = "
-- A key that is remembered no more keeps what is left of its past; if it comes back, that is another row.
CREATE TABLE keys_by_life (id INTEGER PRIMARY KEY, key TEXT NOT NULL, forgotten INTEGER);
INSERT INTO keys_by_life (id, key) SELECT id, key FROM keys;
DROP TABLE keys;
ALTER TABLE keys_by_life RENAME TO keys;
CREATE UNIQUE INDEX keys_remembered ON keys (key) WHERE forgotten IS NULL;
-- Whose server it is: its own real user id.
ALTER TABLE servers ADD COLUMN uid INTEGER;
UPDATE servers SET uid = coalesce(owner_uid,
    (SELECT r.uid FROM runs r WHERE r.key = servers.key AND r.generation = servers.generation));
CREATE INDEX servers_of_user ON servers (uid, ended) WHERE ended IS NOT NULL;
CREATE INDEX servers_of_run ON servers (key, generation);
CREATE INDEX runs_of_user ON runs (uid, ended);
";

/// The fifth migration: what only the first daemon can have known of a server.
const STARTS: &str = "
-- As JSON.
ALTER TABLE servers ADD COLUMN start_known TEXT;
";

/// The sixth migration: how a server ended that orphand did not end, and by whom.
const ENDINGS: &str = "
ALTER TABLE servers ADD COLUMN exit_code INTEGER;
ALTER TABLE servers ADD COLUMN exit_signal INTEGER;
-- As JSON.
ALTER TABLE servers ADD COLUMN killed_by TEXT;
";

/// The seventh migration: each signal, with the verdict of its moment.
const SIGNALS: &str = "
CREATE TABLE signals (
    server INTEGER NOT NULL, at INTEGER NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL, signal TEXT NOT NULL,
    program TEXT NOT NULL, asked INTEGER NOT NULL, evidence TEXT, doubts TEXT,
    PRIMARY KEY (server, at, pid, start, signal)
) WITHOUT ROWID;
CREATE INDEX signals_in_order ON signals (at);
-- They go with their server, so its limits are theirs.
CREATE TRIGGER signals_of_server AFTER DELETE ON servers BEGIN DELETE FROM signals WHERE server = old.id; END;
-- Of the time before only the first and the last signal of a server are known.
INSERT INTO signals SELECT id, reaping, pid, start, 'TERM', '', 0, evidence, doubts FROM servers WHERE reaping IS NOT NULL;
";

/// The eighth migration: when the first daemon of all was started, in the row of its boot. In later boots nothing is from before it.
const FIRST_START: &str = "
-- In nanoseconds since boot.
ALTER TABLE boots ADD COLUMN first_start INTEGER;
";

/// The ninth migration: what the agents of a run left that is no server.
const LEFTOVERS: &str = "
-- How many branches of processes were found, and their resident memory then.
ALTER TABLE runs ADD COLUMN leftovers INTEGER;
ALTER TABLE runs ADD COLUMN leftover_bytes INTEGER;
";

/// The tenth migration: by what a person recognises the agent of a run, and a server.
const HINTS: &str = "
-- As JSON.
ALTER TABLE runs ADD COLUMN hints TEXT;
ALTER TABLE servers ADD COLUMN hints TEXT;
";

pub(super) fn newest(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// The version of a file; 0 if it is empty.
pub(super) fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Upgrades a file to the newest version, completely or not at all. The file must not be newer.
pub(super) fn migrate(db: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let from = version(db)?;
    if from >= newest(steps) {
        return Ok(());
    }
    let change = db.transaction()?;
    for step in steps.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "user_version", newest(steps))?;
    change.commit()
}

//! Reads what the next daemon needs, as far as memory has room: runs of every boot, and the servers followed in this one.

use rusqlite::{Connection, OptionalExtension as _};

use super::schema::{flag, read as read_rows, share};
use orphand_core::model::{
    BootTime, KEYS_OF_USER, Knowledge, RUNS_OF_ALL, RUNS_OF_USER, RememberedRun, RememberedServer,
};

/// The most servers that are read of one user and of all users; the youngest come first.
const SERVERS_OF_USER: usize = 4096;
const SERVERS_OF_ALL: usize = 16_384;
/// The most keys of all users that are remembered at the start.
const KEYS_OF_ALL: usize = 1024;

/// The row id of a boot; -1 if it is not in the file.
pub(super) fn boot_row(db: &Connection, boot_id: &str) -> rusqlite::Result<i64> {
    db.query_row("SELECT coalesce(max(id), -1) FROM boots WHERE boot = ?1", [boot_id], |row| row.get(0))
}

pub(super) fn read(db: &Connection, boot: i64) -> rusqlite::Result<Knowledge> {
    let one = |sql: &str| db.query_row(sql, [boot], |row| row.get::<_, Option<i64>>(0));
    let daemons = one("SELECT count(*) FROM daemons WHERE boot = ?1")?;
    let first_start = one("SELECT max(first_start) FROM boots WHERE id = ?1")?;
    let watched_until = one(
        "SELECT stopped * 1000 - offset_ns FROM daemons WHERE boot = ?1 ORDER BY id DESC LIMIT 1 OFFSET 1",
    )
    .optional()?
    .flatten();
    Ok(Knowledge {
        watched_until: watched_until.map(|at| BootTime(at.cast_unsigned())),
        runs: runs(db, boot)?,
        servers: servers(db, boot)?,
        restarted: daemons > Some(1),
        first_start: first_start.map(|at| BootTime(at.cast_unsigned())),
        incomplete_before: None,
    })
}

/// For each remembered key the last run, all that have not ended, and of each user those that ended last; by their ends.
pub(super) fn runs(db: &Connection, boot: i64) -> rusqlite::Result<Vec<RememberedRun>> {
    let sql = format!(
        "SELECT json_object('this_boot', {this_boot}, 'run', json_object(
            'key', json(k.key), 'generation', generation, 'agent', agent, 'uid', uid,
            'main', json_object('pid', pid, 'start', start), 'invocation_id', invocation, 'alive', {alive}))
         FROM (SELECT *, row_number() OVER (PARTITION BY uid ORDER BY ended DESC) AS nth,
                      max(generation) OVER (PARTITION BY key) AS last
               FROM runs WHERE key IN (SELECT id FROM keys WHERE forgotten IS NULL)) r
              JOIN keys k ON k.id = r.key
         WHERE ended IS NULL OR generation = last
               OR nth <= min({RUNS_OF_USER}, {RUNS_OF_ALL} / (SELECT max(count(DISTINCT uid), 1) FROM runs))
         ORDER BY coalesce(ended, 1 << 62), r.key, generation",
        this_boot = flag("boot = ?1"),
        alive = flag("alive"),
    );
    read_rows(db, &sql, [boot])
}

fn servers(db: &Connection, boot: i64) -> rusqlite::Result<Vec<RememberedServer>> {
    let sql = format!(
        "SELECT json_object(
            'server', json_object(
                'id', json_object('pid', pid, 'start', start), 'name', name, 'rule', rule, 'uid', uid,
                'processes', json(iif(processes = '', '[]', '[{{\"pid\":'
                    || replace(replace(processes, '@', ',\"start\":'), ' ', '}},{{\"pid\":') || '}}]')),
                'owner', json(iif(owner_pid IS NULL, NULL, json_object(
                    'main', json_object('pid', owner_pid, 'start', owner_start), 'name', owner_name,
                    'uid', owner_uid, 'implied', {implied}))),
                'run', json(iif(k.key IS NULL, NULL, json_array(json(k.key), generation))),
                'start', json(start_known)),
            'orphan', json(iif(judged IS NULL AND reaping IS NULL, NULL, json_object(
                'announced', {announced}, 'reaping', {reaping}, 'asked_by', asked_by, 'rss_bytes', coalesce(rss, 0), 'pss_bytes', pss))))
         FROM (SELECT *, row_number() OVER (PARTITION BY {share} ORDER BY id DESC) AS nth
               FROM servers INDEXED BY servers_followed WHERE boot = ?1 AND ended IS NULL) s
              LEFT JOIN keys k ON k.id = s.key
         WHERE nth <= {SERVERS_OF_USER} ORDER BY s.id DESC LIMIT {SERVERS_OF_ALL}",
        implied = flag("owner_implied"),
        announced = flag("judged IS NOT NULL"),
        reaping = flag("reaping IS NOT NULL"),
        share = share("uid"),
    );
    let mut servers: Vec<RememberedServer> = read_rows(db, &sql, [boot])?;
    servers.sort_by_key(|one| (one.server.id.pid, one.server.id.start));
    Ok(servers)
}

/// Keys of which nothing lives, with the last run: with `max()`, SQLite takes the other columns from the same row.
const ENDED_KEYS: &str = "SELECT r.key AS key, uid, coalesce(r.ended, 0) AS ended, max(generation)
    FROM runs r JOIN keys k ON k.id = r.key WHERE k.forgotten IS NULL GROUP BY r.key
    HAVING sum(r.ended IS NULL) = 0
       AND r.key NOT IN (SELECT key FROM servers INDEXED BY servers_followed WHERE ended IS NULL AND key IS NOT NULL)";

/// Marks the keys that exceed the limits of a user or of all as forgotten, as the engine does in memory, which reports them while it
/// runs: but a file whose last facts were lost may have any number. The latest key of every share stays before any share's second.
pub(super) fn forget_excess(db: &Connection, now: i64) -> rusqlite::Result<()> {
    let of_user = format!(
        "UPDATE keys SET forgotten = ?1 WHERE id IN (SELECT key FROM (
            SELECT key, row_number() OVER (PARTITION BY uid ORDER BY ended DESC, key DESC) AS nth FROM ({ENDED_KEYS}))
         WHERE nth > {KEYS_OF_USER})"
    );
    let of_all = format!(
        "UPDATE keys SET forgotten = ?1 WHERE id IN (SELECT key FROM (
            SELECT *, row_number() OVER (PARTITION BY {} ORDER BY ended DESC, key DESC) AS nth FROM ({ENDED_KEYS}))
         ORDER BY nth, ended DESC, key DESC LIMIT -1 OFFSET {KEYS_OF_ALL})",
        share("uid")
    );
    db.execute(&of_user, [now])?;
    db.execute(&of_all, [now]).map(drop)
}

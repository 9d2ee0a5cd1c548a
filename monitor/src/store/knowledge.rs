//! Reads what the next daemon needs: runs of every boot, and the servers that were tracked in this one.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, Row, params, types::Type};

use super::column::{from_json, from_json_or_null, int, natural, optional};
use orphand_core::model::{
    BootTime, Knowledge, ProcessId, RUNS_OF_ALL, RUNS_OF_USER, RememberedOrphan, RememberedRun,
    RememberedServer, Run, RunKey, Share, Tracked, TrackedOwner,
};

/// The most servers that are read of one user and of all users; the youngest come first.
const SERVERS_OF_USER: usize = 4096;
const SERVERS_OF_ALL: usize = 16_384;

const RUN: &str = "SELECT k.key, generation, agent, uid, pid, start, invocation, alive, boot = ?1,
                          coalesce(ended, 9223372036854775807), r.key
                   FROM runs r JOIN keys k ON k.id = r.key WHERE k.forgotten IS NULL";

/// Reads at most as much as there is room for in memory. `boot` is the row id of this boot.
pub(super) fn read(db: &Connection, boot: i64) -> rusqlite::Result<Knowledge> {
    let earlier = "SELECT count(*) > 1 FROM daemons WHERE boot = ?1";
    let restarted = db.query_row(earlier, [boot], |row| row.get(0))?;
    let first_start =
        db.query_row("SELECT first_start FROM boots WHERE id = ?1", [boot], |row| optional(row, 0))?;
    let first_start = first_start.map(BootTime);
    Ok(Knowledge { runs: runs(db, boot)?, servers: servers(db, boot)?, restarted, first_start })
}

/// Runs by time of their end, key and number.
type Runs = BTreeMap<(i64, i64, u64), RememberedRun>;

/// Reads for each remembered key the last run, all runs that have not ended, and for each user the runs that
/// ended last.
pub(super) fn runs(db: &Connection, boot: i64) -> rusqlite::Result<Vec<RememberedRun>> {
    let mut runs = Runs::new();
    let mut read = |condition: &str, uid: i64, most: usize| -> rusqlite::Result<()> {
        let mut statement = db.prepare_cached(&format!("{RUN} AND {condition} LIMIT ?3"))?;
        let mut rows = statement.query(params![boot, uid, int(most as u64)])?;
        while let Some(row) = rows.next()? {
            let run = run(row)?;
            runs.insert((row.get(9)?, row.get(10)?, run.run.generation), run);
        }
        Ok(())
    };
    read(
        "?2 = ?2 AND generation = (SELECT max(generation) FROM runs m WHERE m.key = r.key)",
        0,
        usize::MAX >> 1,
    )?;
    let users: Vec<i64> = db
        .prepare("SELECT DISTINCT uid FROM runs")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let each = RUNS_OF_USER.min(RUNS_OF_ALL / users.len().max(1));
    for uid in users {
        read("uid = ?2 AND ended IS NULL", uid, usize::MAX >> 1)?;
        read("uid = ?2 AND ended IS NOT NULL ORDER BY ended DESC", uid, each)?;
    }
    Ok(runs.into_values().collect())
}

fn servers(db: &Connection, boot: i64) -> rusqlite::Result<Vec<RememberedServer>> {
    let mut statement = db.prepare(
        "SELECT pid, start, name, rule, processes, owner_pid, owner_start, owner_name, owner_uid, owner_implied,
                k.key, generation, judged IS NOT NULL, reaping IS NOT NULL, rss, pss, uid, start_known
         FROM servers s INDEXED BY servers_followed LEFT JOIN keys k ON k.id = s.key
         WHERE boot = ?1 AND ended IS NULL ORDER BY s.id DESC",
    )?;
    let mut of_share: HashMap<Option<Share>, usize> = HashMap::new();
    let mut servers = Vec::new();
    let mut rows = statement.query([boot])?;
    while let Some(row) = rows.next()? {
        let count = of_share.entry(row.get::<_, Option<u32>>(16)?.map(Share::of)).or_default();
        *count += 1;
        if *count <= SERVERS_OF_USER && servers.len() < SERVERS_OF_ALL {
            servers.push(server(row)?);
        }
    }
    servers.sort_by_key(|one| (one.server.id.pid, one.server.id.start));
    Ok(servers)
}

fn run(row: &Row<'_>) -> rusqlite::Result<RememberedRun> {
    let run = Run {
        key: from_json(row, 0)?,
        generation: natural(row, 1)?,
        agent: row.get(2)?,
        uid: row.get(3)?,
        main: ProcessId::new(row.get(4)?, natural(row, 5)?),
        invocation_id: row.get(6)?,
        alive: row.get(7)?,
    };
    Ok(RememberedRun { run, this_boot: row.get(8)? })
}

fn server(row: &Row<'_>) -> rusqlite::Result<RememberedServer> {
    let owner = match (row.get::<_, Option<u32>>(5)?, optional(row, 6)?, row.get(7)?) {
        (Some(pid), Some(start), Some(name)) => Some(TrackedOwner {
            main: ProcessId::new(pid, start),
            name,
            uid: row.get(8)?,
            implied: row.get(9)?,
        }),
        _ => None,
    };
    let key: Option<RunKey> = from_json_or_null(row, 10)?;
    let server = Tracked {
        id: ProcessId::new(row.get(0)?, natural(row, 1)?),
        name: row.get(2)?,
        rule: row.get(3)?,
        uid: row.get(16)?,
        processes: processes(row, 4)?,
        owner,
        run: key.zip(optional(row, 11)?),
        start: from_json_or_null(row, 17)?,
    };
    let judged: bool = row.get(12)?;
    let reaping: bool = row.get(13)?;
    let case = RememberedOrphan { reaping, rss_bytes: natural(row, 14)?, pss_bytes: optional(row, 15)? };
    Ok(RememberedServer { server, orphan: (judged || reaping).then_some(case) })
}

/// Reads a list of processes: `1234@229468 1240@229470`.
fn processes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<ProcessId>> {
    let text: String = row.get(column)?;
    let one = |word: &str| {
        let (pid, start) = word.split_once('@')?;
        Some(ProcessId::new(pid.parse().ok()?, start.parse().ok()?))
    };
    let unreadable =
        || rusqlite::Error::FromSqlConversionFailure(column, Type::Text, "no list of processes".into());
    text.split_whitespace().map(one).collect::<Option<_>>().ok_or_else(unreadable)
}

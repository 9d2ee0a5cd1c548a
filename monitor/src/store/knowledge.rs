//! What the next daemon is told: runs of every boot, and the servers that were followed in this one.

use rusqlite::{Connection, Row, types::Type};

use super::column::{from_json, natural, optional};
use crate::model::{
    Knowledge, ProcessId, RememberedOrphan, RememberedRun, RememberedServer, Run, RunKey, Tracked,
    TrackedOwner,
};

/// Reads all of it. `boot` is this boot's row.
pub(super) fn read(db: &Connection, boot: i64) -> rusqlite::Result<Knowledge> {
    let runs = db
        .prepare(
            "SELECT k.key, generation, agent, uid, pid, start, invocation, alive, boot = ?1
             FROM runs r JOIN keys k ON k.id = r.key ORDER BY k.key, generation",
        )?
        .query_map([boot], run)?
        .collect::<rusqlite::Result<_>>()?;
    let servers = db
        .prepare(
            "SELECT pid, start, name, rule, processes, owner_pid, owner_start, owner_name, owner_uid, owner_implied,
                    k.key, generation, judged IS NOT NULL, reaping IS NOT NULL, rss, pss
             FROM servers s LEFT JOIN keys k ON k.id = s.key WHERE boot = ?1 AND ended IS NULL ORDER BY pid, start",
        )?
        .query_map([boot], server)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Knowledge { runs, servers })
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
    let key: Option<RunKey> =
        if row.get_ref(10)? == rusqlite::types::ValueRef::Null { None } else { Some(from_json(row, 10)?) };
    let server = Tracked {
        id: ProcessId::new(row.get(0)?, natural(row, 1)?),
        name: row.get(2)?,
        rule: row.get(3)?,
        processes: processes(row, 4)?,
        owner,
        run: key.zip(optional(row, 11)?),
    };
    let judged: bool = row.get(12)?;
    let reaping: bool = row.get(13)?;
    let case = RememberedOrphan { reaping, rss_bytes: natural(row, 14)?, pss_bytes: optional(row, 15)? };
    Ok(RememberedServer { server, orphan: (judged || reaping).then_some(case) })
}

/// `1234@229468 1240@229470`.
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

//! What a fact changes: a table of statements. Each is idempotent, and what has ended is never changed.

use rusqlite::{Connection, params};

use orphand_core::model::Fact;

/// A verdict counts even if the server was never recorded: that fact may have been lost while the disk was full.
const ENSURE_SERVER: &str = "INSERT INTO servers (boot, pid, start, name, rule, processes, since)
     VALUES (?1, ?3->>'$.server.pid', ?3->>'$.server.start', '', '', '', ?2) ON CONFLICT (boot, pid, start) DO NOTHING";

const RUN: &str =
    "INSERT INTO runs (key, generation, agent, uid, pid, start, invocation, alive, boot, started, ended)
     SELECT (SELECT id FROM keys WHERE key = ?3->>'$.run.key' AND forgotten IS NULL), ?3->>'$.run.generation',
            ?3->>'$.run.agent', ?3->>'$.run.uid', ?3->>'$.run.main.pid', born, ?3->>'$.run.invocation_id',
            ?3->>'$.run.alive', ?1,
            -- A run began with its process, which may have started long before the daemon.
            iif(born = 0, ?2, min(?2, offset_ns / 1000 + born * 10000)), iif(?3->>'$.run.alive', NULL, ?2)
     FROM (SELECT ?3->>'$.run.main.start' AS born, offset_ns FROM daemons ORDER BY id DESC LIMIT 1) WHERE true
     ON CONFLICT (key, generation) DO UPDATE SET
       agent = excluded.agent, uid = excluded.uid, pid = excluded.pid, start = excluded.start,
       invocation = excluded.invocation, alive = excluded.alive,
       ended = iif(excluded.alive, NULL, coalesce(ended, excluded.ended))";

const SERVER: &str = "INSERT INTO servers (boot, pid, start, name, rule, processes, owner_pid, owner_start, owner_name,
                          owner_uid, owner_implied, key, generation, since, uid, start_known)
     VALUES (?1, ?3->>'$.server.id.pid', ?3->>'$.server.id.start', ?3->>'$.server.name', ?3->>'$.server.rule',
       coalesce((SELECT group_concat((value->>'pid') || '@' || (value->>'start'), ' ')
                 FROM json_each(?3, '$.server.processes')), ''),
       ?3->>'$.server.owner.main.pid', ?3->>'$.server.owner.main.start', ?3->>'$.server.owner.name',
       ?3->>'$.server.owner.uid', ?3->>'$.server.owner.implied',
       (SELECT id FROM keys WHERE key = ?3->>'$.server.run[0]' AND forgotten IS NULL), ?3->>'$.server.run[1]', ?2,
       ?3->>'$.server.uid', ?3->>'$.server.start')
     ON CONFLICT (boot, pid, start) DO UPDATE SET
       name = excluded.name, rule = excluded.rule, processes = excluded.processes,
       owner_pid = excluded.owner_pid, owner_start = excluded.owner_start, owner_name = excluded.owner_name,
       owner_uid = excluded.owner_uid, owner_implied = excluded.owner_implied,
       key = excluded.key, generation = excluded.generation,
       uid = coalesce(excluded.uid, uid), start_known = excluded.start_known
     WHERE ended IS NULL";

// A server that forks for ever must not fill the store.
const SIGNALLED: &str = "INSERT OR IGNORE INTO signals (server, at, pid, start, program, signal, asked, evidence, doubts)
     SELECT id, ?2, ?3->>'$.process.pid', ?3->>'$.process.start', ?3->>'$.program', ?3->>'$.signal', ?3->>'$.asked',
            evidence, doubts
     FROM servers WHERE boot = ?1 AND pid = ?3->>'$.server.pid' AND start = ?3->>'$.server.start'
       AND (SELECT count(*) FROM signals g WHERE g.server = servers.id) < 1024";

const LEFTOVERS: &str = "UPDATE runs SET leftovers = ?3->>'$.count', leftover_bytes = ?3->>'$.rss_bytes'
     WHERE key = (SELECT id FROM keys WHERE key = ?3->>'$.key' AND forgotten IS NULL)
       AND generation = ?3->>'$.generation'";

const LOST: &str = "INSERT OR IGNORE INTO losses (at, forks, execs, exits, setsids, members)
     VALUES (?2, ?3->>'$.losses.fork', ?3->>'$.losses.exec', ?3->>'$.losses.exit', ?3->>'$.losses.setsid',
             ?3->>'$.losses.member')";

/// Writes a fact that became known at `now` (microseconds of the wall clock). `boot` is the row id of this boot.
pub(super) fn write(db: &Connection, boot: i64, now: i64, fact: &Fact) -> rusqlite::Result<()> {
    let json = serde_json::to_string(fact)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    // ?1 is the boot, ?2 the time, ?3 the fact.
    let run = |sql: &str| db.prepare_cached(sql)?.execute(params![boot, now, json]).map(drop);
    let key = |path| {
        run(&format!("INSERT OR IGNORE INTO keys (key) SELECT ?3->>'{path}' WHERE ?3->>'{path}' IS NOT NULL"))
    };
    let change = |set| {
        run(&format!(
            "UPDATE servers SET {set} WHERE boot = ?1 AND pid = ?3->>'$.server.pid' AND start = ?3->>'$.server.start'
             AND ended IS NULL"
        ))
    };
    match fact {
        Fact::Run { .. } => key("$.run.key").and_then(|()| run(RUN)),
        // Its rows are deleted later.
        Fact::Forgotten { .. } => {
            run("UPDATE keys SET forgotten = ?2 WHERE key = ?3->>'$.key' AND forgotten IS NULL")
        }
        Fact::Server { .. } => key("$.server.run[0]").and_then(|()| run(SERVER)),
        Fact::Orphan { .. } => run(ENSURE_SERVER).and_then(|()| {
            change(
                "judged = coalesce(judged, ?2), evidence = ?3->>'$.evidence', guards = ?3->>'$.guards',
                 rss = ?3->>'$.rss_bytes', pss = ?3->>'$.pss_bytes', unproven = NULL, doubts = NULL",
            )
        }),
        // What is unproven has doubts and no guards.
        Fact::Spared { .. } => change("guards = iif(judged IS NULL, NULL, ?3->>'$.guards')"),
        // If it was an orphan, it no longer is. A signal that was sent stays recorded.
        Fact::Unproven { .. } => run(ENSURE_SERVER).and_then(|()| {
            change(
                "unproven = coalesce(unproven, ?2), evidence = ?3->>'$.evidence', doubts = ?3->>'$.doubts',
                 rss = ?3->>'$.rss_bytes', judged = NULL, guards = NULL, pss = NULL",
            )
        }),
        // No guard holds, or only one that a person's word overrules: that stays.
        Fact::Reaping { .. } => run(ENSURE_SERVER).and_then(|()| {
            change(
                "reaping = coalesce(reaping, ?2), asked_by = ?3->>'$.asked_by',
                 guards = iif(?3->>'$.asked_by' IS NULL, '[]', guards)",
            )
        }),
        Fact::Signalled { .. } => run(ENSURE_SERVER).and_then(|()| run(SIGNALLED)),
        Fact::ReapFailed { .. } => change("failed_pid = ?3->>'$.pid', failure = ?3->>'$.error'"),
        Fact::Cleared { .. } => change(
            "judged = NULL, evidence = NULL, guards = NULL, rss = NULL, pss = NULL, reaping = NULL,
             asked_by = NULL, failed_pid = NULL, failure = NULL, unproven = NULL, doubts = NULL",
        ),
        // Its processes, and what they ran, are no longer needed.
        Fact::Ended { .. } => change(
            "ended = ?2, how = ?3->>'$.end.outcome', took_ms = ?3->>'$.end.took_ms',
             signal = iif(?3->>'$.end.outcome' = 'reaped', ?3->>'$.end.signal', NULL),
             exit_signal = iif(?3->>'$.end.outcome' = 'exited', ?3->>'$.end.signal', NULL),
             freed = ?3->>'$.end.freed_bytes', freed_pss = ?3->>'$.end.freed_pss_bytes',
             exit_code = ?3->>'$.end.exit_code', killed_by = ?3->>'$.end.killed_by', processes = NULL, start_known = NULL,
             guards = iif(?3->>'$.end.outcome' = 'reaped' AND asked_by IS NULL, '[]', guards)",
        ),
        Fact::Leftovers { .. } => run(LEFTOVERS),
        Fact::AgentHints { .. } => run("UPDATE runs SET hints = ?3->>'$.hints'
             WHERE boot = ?1 AND pid = ?3->>'$.agent.pid' AND start = ?3->>'$.agent.start'"),
        Fact::ServerHints { .. } => change("hints = ?3->>'$.hints'"),
        Fact::Lost { .. } => run(LOST),
    }
}

//! Writes facts as rows. Every statement is idempotent, and what has ended is never changed.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, named_params, params};

use super::column::{int, json, wall_us};
use orphand_core::model::{BootTime, End, Ending, Fact, Losses, ProcessId, Run, RunKey, Tracked};

/// Row ids of the table `keys` by key. A cache; it must be cleared when a transaction fails, because rows may
/// have been inserted in it.
pub(super) type Keys = HashMap<RunKey, i64>;

/// Writes facts within a transaction.
pub(super) struct FactWriter<'a> {
    pub db: &'a Connection,
    /// The row id of this boot.
    pub boot: i64,
    /// The offset from `CLOCK_BOOTTIME` to the wall clock in nanoseconds.
    pub offset_ns: i64,
    pub keys: &'a mut Keys,
}

impl FactWriter<'_> {
    /// Writes a fact that became known at `at`.
    pub fn write(&mut self, at: BootTime, fact: &Fact) -> rusqlite::Result<()> {
        let now = wall_us(at, self.offset_ns);
        match fact {
            Fact::Run { run } => self.run(at, run),
            Fact::Forgotten { key } => self.forgotten(now, key),
            Fact::Server { server } => self.server(now, server),
            Fact::Orphan { server, evidence, guards, rss_bytes, pss_bytes } => {
                self.ensure_row(now, *server)?;
                self.change(
                    *server,
                    "judged = coalesce(judged, ?4), evidence = ?5, guards = ?6, rss = ?7, pss = ?8, unproven = NULL,
                     doubts = NULL",
                    params![now, json(evidence)?, json(guards)?, int(*rss_bytes), pss_bytes.map(int)],
                )
            }
            Fact::Unproven { server, evidence, doubts, rss_bytes } => {
                self.ensure_row(now, *server)?;
                // If it was an orphan, it no longer is. A signal that was sent stays recorded.
                self.change(
                    *server,
                    "unproven = coalesce(unproven, ?4), evidence = ?5, doubts = ?6, rss = ?7, judged = NULL,
                     guards = NULL, pss = NULL",
                    params![now, json(evidence)?, json(doubts)?, int(*rss_bytes)],
                )
            }
            Fact::Reaping { server } => {
                self.ensure_row(now, *server)?;
                self.change(*server, "reaping = coalesce(reaping, ?4)", params![now])
            }
            Fact::Signalled { server, process, program, signal, asked } => {
                self.ensure_row(now, *server)?;
                // A server that forks for ever must not fill the store.
                self.run_on(
                    *server,
                    "INSERT OR IGNORE INTO signals (server, at, pid, start, program, signal, asked, evidence, doubts)
                     SELECT id, ?4, ?5, ?6, ?7, ?8, ?9, evidence, doubts FROM servers
                     WHERE boot = ?1 AND pid = ?2 AND start = ?3
                       AND (SELECT count(*) FROM signals g WHERE g.server = servers.id) < 1024",
                    params![now, process.pid, int(process.start), program, json(signal)?, asked],
                )
            }
            Fact::ReapFailed { server, pid, error } => {
                self.change(*server, "failed_pid = ?4, failure = ?5", params![pid, error])
            }
            Fact::Cleared { server } => self.change(
                *server,
                "judged = NULL, evidence = NULL, guards = NULL, rss = NULL, pss = NULL, reaping = NULL,
                 failed_pid = NULL, failure = NULL, unproven = NULL, doubts = NULL",
                params![],
            ),
            Fact::Ended { server, end } => self.ended(now, *server, end),
            Fact::Leftovers { key, generation, count, rss_bytes } => {
                let key = self.key(key)?;
                self.db
                    .prepare_cached(
                        "UPDATE runs SET leftovers = ?3, leftover_bytes = ?4 WHERE key = ?1 AND generation = ?2",
                    )?
                    .execute(params![key, int(*generation), int(*count), int(*rss_bytes)])
                    .map(drop)
            }
            Fact::AgentHints { agent, hints } => self.run_on(
                *agent,
                "UPDATE runs SET hints = ?4 WHERE boot = ?1 AND pid = ?2 AND start = ?3",
                params![json(hints)?],
            ),
            Fact::ServerHints { server, hints } => self.change(*server, "hints = ?4", params![json(hints)?]),
            Fact::Lost { losses } => self.lost(now, losses),
        }
    }

    fn run(&mut self, at: BootTime, run: &Run) -> rusqlite::Result<()> {
        let key = self.key(&run.key)?;
        // A run began with its process, which may have started long before the daemon.
        let born = BootTime(run.main.start.saturating_mul(10_000_000));
        let began = if run.main.start == 0 { at } else { born.min(at) };
        self.db
            .prepare_cached(
                "INSERT INTO runs (key, generation, agent, uid, pid, start, invocation, alive, boot, started, ended)
                 VALUES (:key, :generation, :agent, :uid, :pid, :start, :invocation, :alive, :boot, :began,
                         iif(:alive, NULL, :now))
                 ON CONFLICT (key, generation) DO UPDATE SET
                   agent = excluded.agent, uid = excluded.uid, pid = excluded.pid, start = excluded.start,
                   invocation = excluded.invocation, alive = excluded.alive,
                   ended = iif(excluded.alive, NULL, coalesce(ended, excluded.ended))",
            )?
            .execute(named_params! {
                ":key": key, ":generation": int(run.generation), ":agent": run.agent, ":uid": run.uid,
                ":pid": run.main.pid, ":start": int(run.main.start), ":invocation": run.invocation_id,
                ":alive": run.alive, ":boot": self.boot, ":began": wall_us(began, self.offset_ns),
                ":now": wall_us(at, self.offset_ns),
            })?;
        Ok(())
    }

    /// Marks the key; the maintenance thread deletes its rows later.
    fn forgotten(&mut self, now: i64, key: &RunKey) -> rusqlite::Result<()> {
        self.keys.remove(key);
        self.db
            .prepare_cached("UPDATE keys SET forgotten = ?2 WHERE key = ?1 AND forgotten IS NULL")?
            .execute(params![json(key)?, now])
            .map(drop)
    }

    fn server(&mut self, now: i64, server: &Tracked) -> rusqlite::Result<()> {
        let run = match &server.run {
            Some((key, generation)) => Some((self.key(key)?, int(*generation))),
            None => None,
        };
        let processes: Vec<String> = server.processes.iter().map(ToString::to_string).collect();
        let owner = server.owner.as_ref();
        self.db
            .prepare_cached(
                "INSERT INTO servers (boot, pid, start, name, rule, processes, owner_pid, owner_start, owner_name,
                                      owner_uid, owner_implied, key, generation, since, uid, start_known)
                 VALUES (:boot, :pid, :start, :name, :rule, :processes, :owner_pid, :owner_start, :owner_name,
                         :owner_uid, :owner_implied, :key, :generation, :now, :uid, :start_known)
                 ON CONFLICT (boot, pid, start) DO UPDATE SET
                   name = excluded.name, rule = excluded.rule, processes = excluded.processes,
                   owner_pid = excluded.owner_pid, owner_start = excluded.owner_start,
                   owner_name = excluded.owner_name, owner_uid = excluded.owner_uid,
                   owner_implied = excluded.owner_implied, key = excluded.key, generation = excluded.generation,
                   uid = coalesce(excluded.uid, uid), start_known = excluded.start_known
                 WHERE ended IS NULL",
            )?
            .execute(named_params! {
                ":boot": self.boot, ":pid": server.id.pid, ":start": int(server.id.start),
                ":name": server.name, ":rule": server.rule, ":processes": processes.join(" "),
                ":owner_pid": owner.map(|o| o.main.pid), ":owner_start": owner.map(|o| int(o.main.start)),
                ":owner_name": owner.map(|o| &o.name), ":owner_uid": owner.map(|o| o.uid),
                ":owner_implied": owner.map(|o| o.implied),
                ":key": run.map(|(key, _)| key), ":generation": run.map(|(_, generation)| generation),
                ":now": now, ":uid": server.uid, ":start_known": server.start.as_ref().map(json).transpose()?,
            })?;
        Ok(())
    }

    /// A verdict counts even if the server was never recorded: that fact may have been lost while the disk
    /// was full.
    fn ensure_row(&self, now: i64, server: ProcessId) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "INSERT INTO servers (boot, pid, start, name, rule, processes, since)
                 VALUES (?1, ?2, ?3, '', '', '', ?4) ON CONFLICT (boot, pid, start) DO NOTHING",
            )?
            .execute(params![self.boot, server.pid, int(server.start), now])?;
        Ok(())
    }

    fn ended(&self, now: i64, server: ProcessId, end: &End) -> rusqlite::Result<()> {
        let none = &Ending::default();
        let (how, signal, took_ms, freed, freed_pss, ending) = match end {
            End::Exited { ending } => ("exited", None, None, None, None, ending),
            End::OrphanExited { ending } => ("orphan_exited", None, None, None, None, ending),
            End::Unseen => ("unseen", None, None, None, None, none),
            End::Reaped { signal, took_ms, freed_bytes, freed_pss_bytes } => {
                ("reaped", *signal, *took_ms, Some(*freed_bytes), *freed_pss_bytes, none)
            }
        };
        let signal = signal.map(|signal| json(&signal)).transpose()?;
        let killed_by = ending.killed_by.as_ref().map(json).transpose()?;
        // Its processes are no longer needed.
        self.change(
            server,
            "ended = ?4, how = ?5, signal = ?6, took_ms = ?7, freed = ?8, freed_pss = ?9, exit_code = ?10,
             exit_signal = ?11, killed_by = ?12, processes = NULL",
            params![
                now,
                how,
                signal,
                took_ms.map(int),
                freed.map(int),
                freed_pss.map(int),
                ending.exit_code,
                ending.signal,
                killed_by
            ],
        )
    }

    fn lost(&self, now: i64, losses: &Losses) -> rusqlite::Result<()> {
        let Losses { fork, exec, exit, setsid, member } = *losses;
        self.db
            .prepare_cached("INSERT OR IGNORE INTO losses VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![now, int(fork), int(exec), int(exit), int(setsid), int(member)])?;
        Ok(())
    }

    /// Changes the row of a server that has not ended. The parameters begin at ?4.
    fn change(&self, server: ProcessId, set: &str, rest: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
        let sql =
            format!("UPDATE servers SET {set} WHERE boot = ?1 AND pid = ?2 AND start = ?3 AND ended IS NULL");
        self.run_on(server, &sql, rest)
    }

    /// Runs `sql` on one process: ?1 to ?3 are its identity, the other parameters follow.
    fn run_on(&self, process: ProcessId, sql: &str, rest: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
        let start = int(process.start);
        let mut all: Vec<&dyn rusqlite::ToSql> = vec![&self.boot, &process.pid, &start];
        all.extend(rest);
        self.db.prepare_cached(sql)?.execute(all.as_slice())?;
        Ok(())
    }

    fn key(&mut self, key: &RunKey) -> rusqlite::Result<i64> {
        if let Some(id) = self.keys.get(key) {
            return Ok(*id);
        }
        let text = json(key)?;
        let find = |db: &Connection| {
            db.prepare_cached("SELECT id FROM keys WHERE key = ?1 AND forgotten IS NULL")?
                .query_row([&text], |row| row.get::<_, i64>(0))
                .optional()
        };
        let id = match find(self.db)? {
            Some(id) => id,
            None => self.db.prepare_cached("INSERT INTO keys (key) VALUES (?1)")?.insert([&text])?,
        };
        self.keys.insert(key.clone(), id);
        Ok(id)
    }
}

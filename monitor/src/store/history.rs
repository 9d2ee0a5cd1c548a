//! Reads the history, with or without a running daemon. Never writes and never waits for a lock.

use std::{collections::HashMap, path::Path, time::Duration};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Row};

use super::{
    column::{from_json, from_json_or_null, from_name, natural, optional},
    error::StoreError,
    files, knowledge,
    schema::{self, STEPS},
};
use orphand_core::model::{
    DaemonLife, Ending, History, HistoryQuery, Losses, Outcome, PastLoss, PastOrphan, PastRun, PastSignal,
    ProcessId, RememberedRun, RunKey, RunView, ServerCounts,
};

/// Reads the history from the state directory `dir`.
pub fn history(dir: &Path, query: &HistoryQuery) -> Result<History, StoreError> {
    let nothing = History { since: query.since, until: query.until, ..History::default() };
    read_only(dir, |db| read(db, query)).map(|found| found.unwrap_or(nothing))
}

/// The runs that daemons have counted, of every boot, with their numbers.
pub fn runs(dir: &Path, boot_id: &str) -> Result<Vec<RememberedRun>, StoreError> {
    let read = |db: &mut Connection| {
        let of_boot = "SELECT coalesce(max(id), -1) FROM boots WHERE boot = ?1";
        let boot = db.query_row(of_boot, [boot_id], |row| row.get(0))?;
        knowledge::runs(db, boot)
    };
    read_only(dir, read).map(Option::unwrap_or_default)
}

/// Opens the store and reads from it; nothing where it was just created and is empty.
pub(super) fn read_only<T>(
    dir: &Path,
    read: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    let file = dir.join(files::FILE);
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::Absent(file));
        }
        Err(error) => return Err(StoreError::file("read", &file, &error)),
        Ok(_) => {}
    }
    let failed = |operation| {
        let file = &file;
        move |source| StoreError::of(operation, file, &source)
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(&file, flags).map_err(failed("open"))?;
    db.busy_timeout(Duration::from_secs(1)).map_err(failed("open"))?;
    let (version, known) = (schema::version(&db).map_err(failed("read"))?, schema::newest(STEPS));
    match version {
        0 => return Ok(None),
        _ if version > known => return Err(StoreError::Newer { path: file, version, known }),
        _ if version < known => {
            let versions = format!("has version {version}, this orphand reads {known}");
            let path = file.display();
            return Err(StoreError::Other(format!("the store {path} {versions}: `orphand run` upgrades it")));
        }
        _ => {}
    }
    read(&mut db).map(Some).map_err(failed("read"))
}

fn read(db: &mut Connection, query: &HistoryQuery) -> rusqlite::Result<History> {
    // One transaction, so that all tables are read as of the same time.
    let moment = db.transaction()?;
    let reader = Reader {
        db: &moment,
        query,
        since: query.since.map_or(i64::MIN, Timestamp::as_microsecond),
        until: query.until.map_or(i64::MAX, Timestamp::as_microsecond),
        boot: match &query.boot_id {
            // A boot in which no daemon ran: everything has ended.
            Some(id) => {
                moment.query_row("SELECT coalesce(max(id), -1) FROM boots WHERE boot = ?1", [id], |row| {
                    row.get(0)
                })?
            }
            None => moment.query_row("SELECT coalesce(max(boot), -1) FROM daemons", [], |row| row.get(0))?,
        },
    };
    let (runs, unaccounted) = reader.runs()?;
    let (orphans, unproven) = (reader.judged("judged")?, reader.judged("unproven")?);
    let never_judged = if query.never_judged { reader.never_judged()? } else { Vec::new() };
    let host = query.agent.is_none();
    Ok(History {
        since: query.since,
        until: query.until,
        begins: moment.query_row("SELECT min(started) FROM daemons", [], |row| time(row, 0))?,
        signals: reader.signals()?,
        runs,
        unaccounted,
        orphans,
        unproven,
        never_judged,
        daemons: if host { reader.daemons()? } else { Vec::new() },
        losses: if host { reader.losses()? } else { Vec::new() },
    })
}

struct Reader<'a> {
    db: &'a Connection,
    query: &'a HistoryQuery,
    /// Microseconds of the wall clock since 1970.
    since: i64,
    until: i64,
    /// The row id of the present boot; -1 or an unused id if it is not in the file.
    boot: i64,
}

impl Reader<'_> {
    fn runs(&self) -> rusqlite::Result<(Vec<PastRun>, ServerCounts)> {
        let mut accounts = HashMap::new();
        let mut unaccounted = ServerCounts::default();
        let mut statement = self.db.prepare(
            "SELECT key, generation, count(*), count(judged), total(how = 'reaped'), total(freed), total(freed_pss),
                    total(judged IS NOT NULL AND ended IS NULL AND boot = ?1), max(coalesce(ended, 1 << 62)), owner_name,
                    count(unproven), total(unproven IS NOT NULL AND ended IS NULL AND boot = ?1)
             FROM servers GROUP BY key, generation, iif(key IS NULL, owner_name, NULL)",
        )?;
        let mut rows = statement.query([self.boot])?;
        while let Some(row) = rows.next()? {
            let account = account(row)?;
            match (row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?) {
                (Some(key), Some(generation)) => {
                    accounts.insert((key, generation), account);
                }
                _ if row.get::<_, i64>(8)? >= self.since && self.is_wanted(&[row.get(9)?]) => {
                    unaccounted.add(&account);
                }
                _ => {}
            }
        }
        let mut statement = self.db.prepare(
            "SELECT k.key, generation, agent, invocation, started,
                    iif(ended IS NULL AND boot <> ?1, started, ended), r.key,
                    coalesce(leftovers, 0), coalesce(leftover_bytes, 0), r.hints
             FROM runs r JOIN keys k ON k.id = r.key
             WHERE (ended IS NULL OR ended >= ?2) AND started <= ?3 ORDER BY started, r.key, generation",
        )?;
        let mut rows = statement.query([self.boot, self.since, self.until])?;
        let mut runs = Vec::new();
        while let Some(row) = rows.next()? {
            let run = view(row, 0)?;
            if self.is_wanted(&[Some(run.agent.clone()), run.unit.clone()]) {
                runs.push(PastRun {
                    started: time(row, 4)?.unwrap_or_default(),
                    ended: time(row, 5)?,
                    leftovers: natural(row, 7)?,
                    leftover_bytes: natural(row, 8)?,
                    hints: from_json_or_null(row, 9)?.unwrap_or_default(),
                    account: accounts.get(&(row.get(6)?, row.get(1)?)).copied().unwrap_or_default(),
                    run,
                });
            }
        }
        Ok((runs, unaccounted))
    }

    /// Reads the servers whose column `verdict` has a time, which is when they were judged so.
    fn judged(&self, verdict: &str) -> rusqlite::Result<Vec<PastOrphan>> {
        self.servers(verdict, &format!("{verdict} IS NOT NULL"))
    }

    /// Reads the servers that ended without a verdict.
    fn never_judged(&self) -> rusqlite::Result<Vec<PastOrphan>> {
        self.servers("s.ended", "s.ended IS NOT NULL AND judged IS NULL AND unproven IS NULL")
    }

    fn servers(&self, when: &str, which: &str) -> rusqlite::Result<Vec<PastOrphan>> {
        let mut statement = self.db.prepare(&format!(
            "SELECT k.key, s.generation, r.agent, r.invocation, s.pid, s.start, name, rule, owner_name, {when},
                    coalesce(evidence, '[]'), coalesce(guards, '[]'), rss, pss, failure, s.ended, how, signal, took_ms, freed, freed_pss,
                    reaping IS NOT NULL, s.boot = ?1, coalesce(doubts, '[]'), exit_code, exit_signal, killed_by,
                    s.hints
             FROM servers s LEFT JOIN keys k ON k.id = s.key
                  LEFT JOIN runs r ON r.key = s.key AND r.generation = s.generation
             WHERE {which} AND {when} <= ?3 AND (s.ended IS NULL OR s.ended >= ?2) ORDER BY {when}, s.id"
        ))?;
        let mut rows = statement.query([self.boot, self.since, self.until])?;
        let mut orphans = Vec::new();
        while let Some(row) = rows.next()? {
            let orphan = orphan(row)?;
            let (agent, unit) = orphan.run.as_ref().map(|run| (run.agent.clone(), run.unit.clone())).unzip();
            if self.is_wanted(&[orphan.owner.clone(), agent, unit.flatten()]) {
                orphans.push(orphan);
            }
        }
        Ok(orphans)
    }

    fn signals(&self) -> rusqlite::Result<Vec<PastSignal>> {
        let mut statement = self.db.prepare(
            "SELECT k.key, s.generation, r.agent, r.invocation, g.at, g.signal, g.pid, g.start, program, s.pid, s.start,
                    name, owner_name, asked, coalesce(g.evidence, '[]'), coalesce(g.doubts, '[]')
             FROM signals g JOIN servers s ON s.id = g.server LEFT JOIN keys k ON k.id = s.key
                  LEFT JOIN runs r ON r.key = s.key AND r.generation = s.generation
             WHERE g.at BETWEEN ?1 AND ?2 ORDER BY g.at, g.pid",
        )?;
        let mut rows = statement.query([self.since, self.until])?;
        let mut signals = Vec::new();
        while let Some(row) = rows.next()? {
            let accounted = row.get_ref(0)? != rusqlite::types::ValueRef::Null;
            let run = accounted.then(|| view(row, 0)).transpose()?;
            let owner: Option<String> = row.get(12)?;
            let (agent, unit) = run.as_ref().map(|run| (run.agent.clone(), run.unit.clone())).unzip();
            let Some(signal) = from_name(row, 5)? else { continue };
            if self.is_wanted(&[owner.clone(), agent, unit.flatten()]) {
                signals.push(PastSignal {
                    at: time(row, 4)?.unwrap_or_default(),
                    signal,
                    pid: row.get(6)?,
                    start: natural(row, 7)?,
                    program: row.get(8)?,
                    server: ProcessId::new(row.get(9)?, natural(row, 10)?).to_string(),
                    name: row.get(11)?,
                    run,
                    owner,
                    asked: row.get(13)?,
                    evidence: from_json(row, 14)?,
                    doubts: from_json(row, 15)?,
                });
            }
        }
        Ok(signals)
    }

    fn daemons(&self) -> rusqlite::Result<Vec<DaemonLife>> {
        // A daemon that was killed counts as of its start.
        self.db
            .prepare(
                "SELECT started, stopped, version, b.boot FROM daemons d JOIN boots b ON b.id = d.boot
                 WHERE (coalesce(stopped, started) >= ?1 OR d.id = (SELECT max(id) FROM daemons)) AND started <= ?2
                 ORDER BY d.id",
            )?
            .query_map([self.since, self.until], |row| {
                Ok(DaemonLife {
                    started: time(row, 0)?.unwrap_or_default(),
                    stopped: time(row, 1)?,
                    version: row.get(2)?,
                    boot_id: row.get(3)?,
                })
            })?
            .collect()
    }

    fn losses(&self) -> rusqlite::Result<Vec<PastLoss>> {
        let loss = |row: &Row<'_>| {
            let records = Losses {
                fork: natural(row, 1)?,
                exec: natural(row, 2)?,
                exit: natural(row, 3)?,
                setsid: natural(row, 4)?,
                member: natural(row, 5)?,
            };
            Ok(PastLoss { at: time(row, 0)?.unwrap_or_default(), records })
        };
        self.db
            .prepare(
                "SELECT at, forks, execs, exits, setsids, members FROM losses WHERE at BETWEEN ?1 AND ?2 ORDER BY at",
            )?
            .query_map([self.since, self.until], loss)?
            .collect()
    }

    fn is_wanted(&self, names: &[Option<String>]) -> bool {
        self.query.agent.as_ref().is_none_or(|agent| names.iter().flatten().any(|name| name == agent))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums of counts and bytes, far below 2^53 and never negative"
)]
fn account(row: &Row<'_>) -> rusqlite::Result<ServerCounts> {
    let total = |column| row.get::<_, f64>(column).map(|sum| sum as u64);
    Ok(ServerCounts {
        servers: natural(row, 2)?,
        orphans: natural(row, 3)?,
        reaped: total(4)?,
        freed_bytes: total(5)?,
        freed_pss_bytes: total(6)?,
        left: total(7)?,
        unproven: natural(row, 10)?,
        unproven_left: total(11)?,
    })
}

/// Reads key, generation, agent and invocation from four columns.
pub(super) fn view(row: &Row<'_>, first: usize) -> rusqlite::Result<RunView> {
    let key: RunKey = from_json(row, first)?;
    let agent: Option<String> = row.get(first + 2)?;
    let (name, uid, unit) = match key {
        RunKey::Unit(unit) => (unit.name.clone(), None, Some(unit)),
        RunKey::Agent { name, uid } => (name, Some(uid), None),
    };
    Ok(RunView {
        agent: agent.filter(|agent| !agent.is_empty()).unwrap_or(name),
        generation: optional(row, first + 1)?,
        uid,
        manager: unit.as_ref().map(|unit| unit.manager.clone()).filter(|manager| !manager.is_empty()),
        unit: unit.map(|unit| unit.name),
        invocation_id: row.get(first + 3)?,
    })
}

fn orphan(row: &Row<'_>) -> rusqlite::Result<PastOrphan> {
    let accounted: bool = row.get_ref(0)? != rusqlite::types::ValueRef::Null;
    let (reaping, this_boot): (bool, bool) = (row.get(21)?, row.get(22)?);
    let how: Option<String> = row.get(16)?;
    let outcome = match how.as_deref() {
        Some("reaped") => Outcome::Reaped {
            signal: from_name(row, 17)?,
            took_ms: optional(row, 18)?,
            freed_bytes: natural(row, 19)?,
            freed_pss_bytes: optional(row, 20)?,
        },
        Some("unseen") => Outcome::Unseen,
        Some(_) => Outcome::Exited {
            ending: Ending {
                exit_code: row.get(24)?,
                signal: row.get(25)?,
                killed_by: from_json_or_null(row, 26)?,
            },
        },
        None if !this_boot => Outcome::Unseen,
        None if reaping => Outcome::Ending,
        None => Outcome::Stays,
    };
    Ok(PastOrphan {
        id: ProcessId::new(row.get(4)?, natural(row, 5)?).to_string(),
        name: row.get(6)?,
        rule: row.get(7)?,
        hints: from_json_or_null(row, 27)?.unwrap_or_default(),
        run: accounted.then(|| view(row, 0)).transpose()?,
        owner: row.get(8)?,
        judged: time(row, 9)?.unwrap_or_default(),
        evidence: from_json(row, 10)?,
        guards: from_json(row, 11)?,
        doubts: from_json(row, 23)?,
        rss_bytes: natural(row, 12)?,
        pss_bytes: optional(row, 13)?,
        failure: row.get(14)?,
        outcome,
        ended: time(row, 15)?,
    })
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    let us: Option<i64> = row.get(column)?;
    us.map(|us| {
        Timestamp::from_microsecond(us).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, us))
    })
    .transpose()
}

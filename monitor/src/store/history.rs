//! Reads the history, with or without a running daemon. Never writes and never waits for a lock.

use std::{collections::HashMap, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, Row, params};
use serde::de::DeserializeOwned;

use super::{
    StoreError, files, knowledge,
    schema::{self, AGENT, flag, run_view, time},
};
use orphand_core::model::{
    History, HistoryQuery, PastOrphan, RememberedRun, RunView, SERIES, Series, ServerCounts, Timeline,
    TimelineQuery,
};

pub fn history(dir: &Path, query: &HistoryQuery) -> Result<History, StoreError> {
    let nothing = History { since: query.since, until: query.until, ..History::default() };
    read_only(dir, |db| read(db, query)).map(|found| found.unwrap_or(nothing))
}

/// The runs that daemons have counted, of every boot, with their numbers.
pub fn runs(dir: &Path, boot_id: &str) -> Result<Vec<RememberedRun>, StoreError> {
    let read = |db: &mut Connection| knowledge::runs(db, knowledge::boot_row(db, boot_id)?);
    read_only(dir, read).map(Option::unwrap_or_default)
}

/// Opens the store and reads from it; nothing where it was just created and is empty.
fn read_only<T>(
    dir: &Path,
    read: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    let file = dir.join(files::FILE);
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::Absent(file));
        }
        Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => {
            return Err(StoreError::file("read", &file, &error));
        }
        Err(error) => {
            let advice = "use root, or ask the daemon as a member of the group of --socket-group";
            return Err(StoreError::Other(format!("cannot read {}: {error}; {advice}", file.display())));
        }
        // A pipe would be waited for.
        Ok(found) if !found.is_file() => {
            let advice = "move it away, and `orphand run` makes a new one";
            return Err(StoreError::Other(format!("{} is no regular file: {advice}", file.display())));
        }
        Ok(_) => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(&file, flags)
        .and_then(|db| db.busy_timeout(Duration::from_secs(1)).map(|()| db));
    let mut db = opened.map_err(|source| StoreError::of("open", &file, &source))?;
    if !schema::is_made(&db, &file)? {
        return Ok(None);
    }
    read(&mut db).map(Some).map_err(|source| StoreError::of("read", &file, &source))
}

fn read(db: &mut Connection, query: &HistoryQuery) -> rusqlite::Result<History> {
    // One transaction, so that all tables are read as of the same time.
    let moment = db.transaction()?;
    let boot = match &query.boot_id {
        // A boot in which no daemon ran: everything has ended.
        Some(id) => knowledge::boot_row(&moment, id)?,
        None => latest_boot(&moment)?,
    };
    let reader = Reader { db: &moment, query, boot };
    let owners: Vec<ServerCounts> = reader.read(&format!(
        "SELECT json_object({COUNTS}) FROM servers s
         WHERE s.key IS NULL AND (?4 IS NULL OR s.owner_name = ?4)
         GROUP BY s.owner_name HAVING max(coalesce(s.ended, 1 << 62)) >= ?2"
    ))?;
    let mut unaccounted = ServerCounts::default();
    for counts in &owners {
        unaccounted.add(counts);
    }
    let begins = format!("SELECT {} FROM daemons", time("min(started)"));
    let begins: Option<String> = moment.query_row(&begins, [], |row| row.get(0))?;
    let ended = "s.ended IS NOT NULL AND judged IS NULL AND unproven IS NULL";
    Ok(History {
        since: query.since,
        until: query.until,
        begins: begins.and_then(|time| time.parse().ok()),
        signals: reader.read(&signals())?,
        runs: reader.read(&runs_with_counts())?,
        unaccounted,
        orphans: reader.servers("judged", "judged IS NOT NULL")?,
        unproven: reader.servers("unproven", "unproven IS NOT NULL")?,
        never_judged: if query.never_judged { reader.servers("s.ended", ended)? } else { Vec::new() },
        daemons: reader.read(&daemons())?,
        losses: reader.read(&losses())?,
        store_error: None,
    })
}

fn latest_boot(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT coalesce(max(boot), -1) FROM daemons", [], |row| row.get(0))
}

struct Reader<'a> {
    db: &'a Connection,
    query: &'a HistoryQuery,
    /// The row id of the present boot; -1 or an unused id if it is not in the file.
    boot: i64,
}

impl Reader<'_> {
    /// ?1 is the present boot, ?2 and ?3 the first and the last time (microseconds of the wall clock), ?4 the agent asked for.
    fn read<T: DeserializeOwned>(&self, sql: &str) -> rusqlite::Result<Vec<T>> {
        let HistoryQuery { since, until, agent, .. } = self.query;
        let since = since.map_or(i64::MIN, jiff::Timestamp::as_microsecond);
        let until = until.map_or(i64::MAX, jiff::Timestamp::as_microsecond);
        schema::read(self.db, sql, params![self.boot, since, until, agent])
    }

    /// The servers for which a condition holds; the column `when` has the time of their verdict.
    fn servers(&self, when: &str, which: &str) -> rusqlite::Result<Vec<PastOrphan>> {
        self.read(&format!(
            "SELECT json_object(
                'id', s.pid || '@' || s.start, 'name', name, 'rule', rule, 'run', {run}, 'owner', owner_name,
                'owner_id', owner_pid || '@' || owner_start, 'judged', {judged}, 'ended', {ended}, 'evidence', json(coalesce(evidence, '[]')),
                'guards', json(coalesce(guards, '[]')), 'doubts', json(coalesce(doubts, '[]')),
                'rss_bytes', coalesce(rss, 0), 'pss_bytes', pss, 'asked_by', asked_by, 'failure', failure,
                'outcome', CASE WHEN how = 'reaped' THEN how WHEN how = 'unseen' THEN how
                    WHEN how IS NOT NULL THEN 'exited' WHEN s.boot <> ?1 THEN 'unseen'
                    WHEN reaping IS NOT NULL AND (coalesce(guards, '[]') = '[]' OR asked_by IS NOT NULL) THEN 'ending'
                    ELSE 'stays' END,
                'signal', iif(how = 'reaped', signal, exit_signal), 'took_ms', took_ms,
                'freed_bytes', coalesce(freed, 0), 'freed_pss_bytes', freed_pss,
                'exit_code', exit_code, 'killed_by', json(killed_by),
                'configured_name', s.hints->>'$.configured_name', 'cwd', s.hints->>'$.cwd')
             FROM servers s {RUN} WHERE {which} AND {when} <= ?3 AND (s.ended IS NULL OR s.ended >= ?2) AND {wanted}
             ORDER BY {when}, s.id",
            run = run_view("s.generation"),
            judged = time(when),
            ended = time("s.ended"),
            wanted = wanted(),
        ))
    }
}

const RUN: &str = "LEFT JOIN keys k ON k.id = s.key
    LEFT JOIN runs r ON r.key = s.key AND r.generation = s.generation";

/// Whether a server is one of the agent that is asked for: by the name of its owner, its run's agent or unit.
fn wanted() -> String {
    format!("(?4 IS NULL OR ?4 IN (s.owner_name, {AGENT}, k.key->>'$.unit.name'))")
}

const COUNTS: &str = "'servers', count(s.id), 'orphans', count(s.judged),
    'reaped', coalesce(sum(s.how = 'reaped'), 0),
    'freed_bytes', coalesce(sum(s.freed), 0), 'freed_pss_bytes', coalesce(sum(s.freed_pss), 0),
    'left', coalesce(sum(s.judged IS NOT NULL AND s.ended IS NULL AND s.boot = ?1), 0),
    'unproven', count(s.unproven),
    'unproven_left', coalesce(sum(s.unproven IS NOT NULL AND s.ended IS NULL AND s.boot = ?1), 0)";

fn runs_with_counts() -> String {
    format!(
        "SELECT json_object(
            'id', r.pid || '@' || r.start, 'run', {run}, 'started', {started}, 'ended', {ended}, 'leftovers', coalesce(r.leftovers, 0),
            'leftover_bytes', coalesce(r.leftover_bytes, 0), {COUNTS},
            'session', r.hints->>'$.session', 'cwd', r.hints->>'$.cwd', 'terminal', r.hints->>'$.terminal')
         FROM runs r JOIN keys k ON k.id = r.key
              LEFT JOIN servers s ON s.key = r.key AND s.generation = r.generation
         WHERE (r.ended IS NULL OR r.ended >= ?2) AND r.started <= ?3
           AND (?4 IS NULL OR ?4 IN ({AGENT}, k.key->>'$.unit.name'))
         GROUP BY r.key, r.generation ORDER BY r.started, r.key, r.generation",
        run = run_view("r.generation"),
        started = time("r.started"),
        ended = time("iif(r.ended IS NULL AND r.boot <> ?1, r.started, r.ended)"),
    )
}

fn signals() -> String {
    format!(
        "SELECT json_object(
            'at', {at}, 'signal', g.signal, 'pid', g.pid, 'start', g.start, 'program', g.program,
            'server', s.pid || '@' || s.start, 'name', s.name, 'run', {run}, 'owner', s.owner_name,
            'asked', {asked}, 'asked_by', iif(g.asked, s.asked_by, NULL), 'evidence', json(coalesce(g.evidence, '[]')), 'doubts', json(coalesce(g.doubts, '[]')))
         FROM signals g JOIN servers s ON s.id = g.server {RUN}
         WHERE g.at BETWEEN ?2 AND ?3 AND {wanted} ORDER BY g.at, g.pid",
        at = time("g.at"),
        run = run_view("s.generation"),
        asked = flag("g.asked"),
        wanted = wanted(),
    )
}

/// Of the whole host, so of no agent. A daemon that was killed counts as of its start.
fn daemons() -> String {
    format!(
        "SELECT json_object('started', {}, 'stopped', {}, 'version', d.version, 'boot_id', b.boot)
         FROM daemons d JOIN boots b ON b.id = d.boot
         WHERE (coalesce(stopped, started) >= ?2 OR d.id = (SELECT max(id) FROM daemons)) AND started <= ?3
           AND ?4 IS NULL ORDER BY d.id",
        time("started"),
        time("stopped"),
    )
}

fn losses() -> String {
    format!(
        "SELECT json_object('at', {}, 'records', json_object(
            'fork', forks, 'exec', execs, 'exit', exits, 'setsid', setsids, 'member', members))
         FROM losses WHERE at BETWEEN ?2 AND ?3 AND ?4 IS NULL ORDER BY at",
        time("at"),
    )
}

/// What was judged and was there since ?2: without an end it has one if another boot has begun.
const LEFT_BEHIND: &str = "FROM servers s WHERE (judged IS NOT NULL OR unproven IS NOT NULL)
    AND coalesce(ended, iif(boot = ?1, 1 << 62, coalesce(judged, unproven))) >= ?2";

type Whose = (Option<i64>, Option<i64>, Option<String>);

/// What was left behind over time. It is read row by row and only sums are kept, so that a large store costs time and no memory.
pub fn timeline(dir: &Path, query: &TimelineQuery) -> Result<Timeline, StoreError> {
    match read_only(dir, |db| read_timeline(db, query)) {
        Err(StoreError::Absent(_)) | Ok(None) => Ok(empty(query)),
        Ok(Some(line)) => Ok(line),
        Err(error) => Err(error),
    }
}

fn empty(query: &TimelineQuery) -> Timeline {
    Timeline { other: series(query), freed_bytes: vec![0; query.steps], ..Timeline::default() }
}

fn series(query: &TimelineQuery) -> Series {
    Series { bytes: vec![0; query.steps], orphans: vec![0; query.steps], ..Series::default() }
}

fn read_timeline(db: &mut Connection, query: &TimelineQuery) -> rusqlite::Result<Timeline> {
    let moment = db.transaction()?;
    let wanted = [latest_boot(&moment)?, query.from.as_microsecond()];
    let mut line = empty(query);
    let mut places: HashMap<Whose, usize> = HashMap::new();
    let mut statement = moment.prepare(&format!(
        "SELECT g.key, g.generation, g.owner, {} FROM
            (SELECT key, generation, iif(key IS NULL, owner_name, NULL) AS owner, total(rss) AS bytes, count(judged) AS n
             {LEFT_BEHIND} GROUP BY 1, 2, 3 ORDER BY min(n, 1) DESC, bytes DESC, key, generation LIMIT {SERIES}) g
         LEFT JOIN keys k ON k.id = g.key LEFT JOIN runs r ON r.key = g.key AND r.generation = g.generation
         ORDER BY min(g.n, 1) DESC, g.bytes DESC, g.key, g.generation",
        run_view("g.generation")
    ))?;
    let mut found = statement.query(wanted)?;
    while let Some(row) = found.next()? {
        let whose: Whose = (row.get(0)?, row.get(1)?, row.get(2)?);
        let run: Option<RunView> = schema::from_json(row, 3)?;
        places.insert(whose.clone(), line.series.len());
        line.series.push(Series { run, owner: whose.2, ..series(query) });
    }
    let mut statement = moment.prepare(&format!(
        "SELECT key, generation, iif(key IS NULL, owner_name, NULL), judged, ended, rss, how = 'reaped', freed, freed_pss,
                boot = ?1 {LEFT_BEHIND}"
    ))?;
    let mut rows = statement.query(wanted)?;
    while let Some(row) = rows.next()? {
        let place = places.get(&(row.get(0)?, row.get(1)?, row.get(2)?));
        let series = match place.and_then(|place| line.series.get_mut(*place)) {
            Some(series) => series,
            None => &mut line.other,
        };
        count(row, query, series, &mut line.freed_bytes)?;
    }
    Ok(line)
}

fn count(
    row: &Row<'_>,
    query: &TimelineQuery,
    series: &mut Series,
    freed: &mut [u64],
) -> rusqlite::Result<()> {
    let (judged, ended): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
    let is_there = ended.is_none() && row.get(9)?;
    let sums = &mut series.sums;
    sums.servers += 1;
    let Some(judged) = judged else {
        sums.unproven += 1;
        sums.unproven_left += u64::from(is_there);
        return Ok(());
    };
    let bytes = row.get::<_, Option<i64>>(5)?.unwrap_or_default().unsigned_abs();
    sums.orphans += 1;
    sums.left += u64::from(is_there);
    let first = step(query, judged);
    // Of one whose end nobody saw, the end may be told as earlier than the verdict.
    let last = match ended {
        _ if is_there => query.steps.saturating_sub(1),
        Some(ended) => step(query, ended).max(first),
        None => first,
    };
    if row.get::<_, Option<bool>>(6)?.unwrap_or_default() {
        let bytes = |column| row.get::<_, Option<i64>>(column).map(|bytes| bytes.map(i64::unsigned_abs));
        let (resident, proportional) = (bytes(7)?.unwrap_or_default(), bytes(8)?);
        sums.reaped += 1;
        sums.freed_bytes += resident;
        sums.freed_pss_bytes += proportional.unwrap_or_default();
        if let Some(freed) = freed.get_mut(last) {
            *freed += resident;
        }
    }
    let during = first..=last;
    for at in series.bytes.get_mut(during.clone()).unwrap_or_default() {
        *at += bytes;
    }
    for at in series.orphans.get_mut(during).unwrap_or_default() {
        *at += 1;
    }
    Ok(())
}

/// In which step a time is; what is before the first or after the last counts for these.
fn step(query: &TimelineQuery, at_us: i64) -> usize {
    let since = at_us.saturating_sub(query.from.as_microsecond()).max(0);
    let step = usize::try_from(since / (query.step_ms * 1000).max(1)).unwrap_or(usize::MAX);
    step.min(query.steps.saturating_sub(1))
}

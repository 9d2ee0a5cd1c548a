//! Reads what was left behind over time. It reads row by row and keeps only sums, so that a large store costs time
//! and no memory. Never writes and never waits for a lock.

use std::{collections::HashMap, path::Path};

use rusqlite::{Connection, Row};

use super::{
    StoreError,
    history::{latest_boot, read_only},
    schema::{self, run_view},
};
use orphand_core::model::{RunView, SERIES, Series, Timeline, TimelineQuery};

/// What was judged and was there since ?2: without an end it has one if another boot has begun.
const WANTED: &str = "FROM servers s WHERE (judged IS NOT NULL OR unproven IS NOT NULL)
    AND coalesce(ended, iif(boot = ?1, 1 << 62, coalesce(judged, unproven))) >= ?2";

type Whose = (Option<i64>, Option<i64>, Option<String>);

pub fn timeline(dir: &Path, query: &TimelineQuery) -> Result<Timeline, StoreError> {
    match read_only(dir, |db| read(db, query)) {
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

fn read(db: &mut Connection, query: &TimelineQuery) -> rusqlite::Result<Timeline> {
    let moment = db.transaction()?;
    let wanted = [latest_boot(&moment)?, query.from.as_microsecond()];
    let mut line = empty(query);
    let mut places: HashMap<Whose, usize> = HashMap::new();
    let mut statement = moment.prepare(&format!(
        "SELECT g.key, g.generation, g.owner, {} FROM
            (SELECT key, generation, iif(key IS NULL, owner_name, NULL) AS owner, total(rss) AS bytes, count(judged) AS n
             {WANTED} GROUP BY 1, 2, 3 ORDER BY min(n, 1) DESC, bytes DESC, key, generation LIMIT {SERIES}) g
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
                boot = ?1 {WANTED}"
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
            *freed += proportional.unwrap_or(resident);
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

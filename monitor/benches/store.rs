//! The store: what a fact and a commit cost, how it grows, how long a start and a look back take with 100,000 rows.
//!
//! In the folder for temporary files, unless `ORPHAND_BENCH_DIR` names another: on a disk the figures of the daemon's side
//! should not differ, which is what they are for.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use orphand::{
    os::clock,
    store::{Facts, Limits, Opened, Store, history::history},
};
use orphand_core::model::{
    Evidence, Fact, Fate, HistoryQuery, ProcessId, Run, RunKey, Signal, Tracked, TrackedOwner,
};

const BOOT: &str = "bench";
/// Servers of a run.
const SERVERS: u32 = 14;
/// Rows of servers for the start.
const ROWS: u32 = 100_000;
/// Facts that are committed one by one, for the median and the worst.
const SINGLE: usize = 2_000;
const STARTS: usize = 7;

fn main() -> Result<()> {
    let above = std::env::var_os("ORPHAND_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(above).context("cannot make a folder for the store")?;
    println!("The store\n\n| what | measured |\n|---|---|");
    let row = |what: &str, measured: String| println!("| {what} | {measured} |");

    let mut store = open(dir.path())?.0;
    let mut pid = 0;
    let mut single = Vec::with_capacity(SINGLE);
    while single.len() < SINGLE {
        pid += 1;
        for fact in life(pid) {
            let began = Instant::now();
            store.write(&Facts::from([(clock::now(), fact)]))?;
            single.push(began.elapsed());
        }
    }
    single.sort();
    let at = |share: usize| micros(single.get(single.len() * share / 1000).copied().unwrap_or_default());
    row("one fact and its commit, median", at(500));
    row("one fact and its commit, 99th percentile", at(990));
    row("one fact and its commit, worst", at(999));

    let began = Instant::now();
    let mut facts = 0;
    while pid < ROWS {
        let batch = (0..SERVERS).flat_map(|n| life(pid + n + 1)).map(|fact| (clock::now(), fact));
        let batch: Facts = batch.collect();
        pid += SERVERS;
        facts += u32::try_from(batch.len())?;
        store.write(&batch)?;
    }
    row("a fact, committed with those of 13 other servers", micros(began.elapsed() / facts.max(1)));
    store.record_stop(clock::now())?;
    drop(store);

    let file = dir.path().join("orphand.db");
    let bytes = fs::metadata(&file)?.len();
    row("growth per 1,000 orphans", format!("{} kB", bytes / u64::from(pid)));
    row(
        "runs and servers in the file, its size",
        format!("{} and {pid}, {} MB", pid / SERVERS, bytes / 1_000_000),
    );

    let mut starts: Vec<Duration> = (0..STARTS).map(|_| Ok(open(dir.path())?.1)).collect::<Result<_>>()?;
    starts.sort();
    let start = starts.get(STARTS / 2).copied().unwrap_or_default();
    row("start with it: open, check, read what is known, median", millis(start));
    let began = Instant::now();
    let past = history(dir.path(), &HistoryQuery::default())?;
    row("`orphand history` of all of it", millis(began.elapsed()));
    anyhow::ensure!(past.sum().reaped == u64::from(pid), "{:?}", past.sum());
    Ok(())
}

fn open(dir: &Path) -> Result<(Store, Duration)> {
    let began = Instant::now();
    let opened = Store::open(dir, BOOT, clock::realtime_offset(), Limits::default())?;
    let Opened { store, knowledge, set_aside } = opened;
    let took = began.elapsed();
    anyhow::ensure!(set_aside.is_none() && knowledge.servers.is_empty(), "{set_aside:?}");
    Ok((store, took))
}

/// What is told of a server that becomes an orphan and is ended, its share in its run included.
fn life(pid: u32) -> Vec<Fact> {
    let generation = u64::from(pid / SERVERS) + 1;
    let key = RunKey::Agent { name: "claude".to_owned(), uid: 1000 };
    let id = ProcessId::new(pid, u64::from(pid) * 100);
    let owner = TrackedOwner { main: id, name: "claude".to_owned(), uid: 1000, ..TrackedOwner::default() };
    let mut facts = Vec::new();
    if pid.is_multiple_of(SERVERS) || pid == 1 {
        facts.push(Fact::Run {
            run: Run {
                key: key.clone(),
                generation,
                agent: "claude".to_owned(),
                uid: 1000,
                main: id,
                invocation_id: Some("0123456789abcdef0123456789abcdef".to_owned()),
                alive: false,
            },
        });
    }
    let server = Tracked {
        id,
        name: "server-filesystem".to_owned(),
        rule: "npm-mcp".to_owned(),
        uid: Some(1000),
        processes: (0..4).map(|n| ProcessId::new(pid + n, id.start)).collect(),
        owner: Some(owner),
        run: Some((key, generation)),
        start: None,
    };
    let end = Fate::Reaped {
        signal: Some(Signal::Term),
        took_ms: Some(42),
        freed_bytes: 197_132_288,
        freed_pss_bytes: Some(80_000_000),
    };
    facts.push(Fact::Server { server });
    facts.push(Fact::Orphan {
        server: id,
        evidence: vec![Evidence::OwnerExited, Evidence::StdinHangup],
        guards: Vec::new(),
        rss_bytes: 197_132_288,
        pss_bytes: Some(80_000_000),
    });
    facts.push(Fact::Reaping { server: id, asked_by: None });
    facts.push(Fact::Ended { server: id, end });
    facts
}

fn micros(time: Duration) -> String {
    format!("{} us", time.as_micros())
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

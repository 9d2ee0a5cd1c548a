//! What was left behind over time.

use jiff::Timestamp;

use super::*;
use crate::store::history::timeline;
use orphand_core::model::{SERIES, TimelineQuery};

/// Ten minutes from the start of the boot.
fn minutes() -> TimelineQuery {
    TimelineQuery { from: Timestamp::from_nanosecond(OFFSET.into()).unwrap(), step_ms: 60_000, steps: 10 }
}

#[test]
fn an_orphan_counts_from_its_verdict_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(timeline(dir.path(), &minutes()).unwrap().series, []);
    let mut store = open(dir.path());
    record(
        &mut store,
        [
            (1, run(claude(), 1, false)),
            (1, run(unit(), 4, true)),
            (1, server(10, claude(), 1)),
            (1, server(20, claude(), 1)),
            (1, server(30, unit(), 4)),
            (1, server(40, unit(), 4)),
            (130, orphan(10, &[])),
            (131, Fact::Reaping { server: id(10), asked_by: None }),
            (250, reaped(10)),
            (250, orphan(20, &[Guard::Observe])),
            (300, unproven(30, &[Doubt::WireHeld])),
        ],
    );
    let line = timeline(dir.path(), &minutes()).unwrap();
    let [of_claude, of_unit] = line.series.as_slice() else { panic!("{line:?}") };
    assert_eq!(of_claude.run.as_ref().unwrap().generation, Some(1));
    let mb = 1_000_000;
    assert_eq!(of_claude.bytes, [0, 0, mb, mb, 2 * mb, mb, mb, mb, mb, mb]);
    assert_eq!(of_claude.orphans, [0, 0, 1, 1, 2, 1, 1, 1, 1, 1]);
    let sums = of_claude.sums;
    assert_eq!((sums.servers, sums.orphans, sums.reaped, sums.left), (2, 2, 1, 1));
    assert_eq!((sums.freed_bytes, sums.freed_pss_bytes), (mb, 400_000));
    assert_eq!(line.freed_bytes, [0, 0, 0, 0, mb, 0, 0, 0, 0, 0]);
    assert_eq!((of_unit.sums.unproven, of_unit.sums.unproven_left, of_unit.sums.orphans), (1, 1, 0));
    assert_eq!(of_unit.bytes, [0; 10]);
    // What ended before the first step is no part of it, what was judged before it is there from the first step on.
    let late = TimelineQuery {
        from: Timestamp::from_nanosecond((OFFSET + 260_000_000_000).into()).unwrap(),
        ..minutes()
    };
    let line = timeline(dir.path(), &late).unwrap();
    assert_eq!((line.series[0].sums.orphans, line.series[0].bytes[0]), (1, mb));
    // Another boot has begun: it is gone, nobody knows when.
    drop(store);
    let mut store = open_in(dir.path(), "0c8a1b9e-0000-4000-8000-000000000002", OFFSET).unwrap().store;
    record(&mut store, [(1, run(claude(), 2, true))]);
    let line = timeline(dir.path(), &minutes()).unwrap();
    assert_eq!((line.series[0].sums.left, line.series[0].bytes[9]), (0, 0));
    assert_eq!(line.series[0].bytes[4], 2 * mb);
}

#[test]
fn however_many_runs_the_answer_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let runs = 1..=100_u32;
    let facts = runs.flat_map(|n| {
        let generation = u64::from(n);
        let life = life(n * 10, &claude(), generation);
        [(1, run(claude(), generation, false))].into_iter().chain(life.map(|fact| (70, fact)))
    });
    record(&mut store, facts);
    let line = timeline(dir.path(), &minutes()).unwrap();
    assert_eq!(line.series.len(), SERIES);
    assert_eq!(line.other.sums.orphans + line.series.iter().map(|one| one.sums.orphans).sum::<u64>(), 100);
    assert_eq!(line.other.orphans[1], 100 - SERIES as u64);
    assert_eq!(line.freed_bytes[1], 100 * 1_000_000);
}

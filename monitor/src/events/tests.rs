//! Readers beside a writer: where memory and files meet, behind, across daemons, without files.

use std::fs;

use super::*;
use crate::sink::{Format as _, stream::Json};
use orphand_core::model::{BootTime, Notice};

/// One daemon's life as far as events go.
struct Life {
    keeper: Keeper,
    latest: Latest,
    json: Json,
}

impl Life {
    fn begin(dir: &Path) -> Self {
        let (keeper, latest, _) = open(dir, WallClock::default());
        Self { keeper, latest, json: Json::new(WallClock::default()) }
    }

    /// Tells as many events, a second apart.
    fn tell(&mut self, events: std::ops::Range<u64>) {
        let mut lines = String::new();
        for number in events {
            let notice = Notice::Resynced { added: number, removed: 0 };
            self.json.write(BootTime(number * 1_000_000_000), &notice, &mut lines);
        }
        self.keeper.write(&lines).unwrap();
    }

    fn reader(&self, since: Option<i64>, follow: bool) -> Reader {
        let since = since.map(|seconds| jiff::Timestamp::from_second(seconds).unwrap());
        Reader::new(&self.latest, &EventQuery { since, follow, after: None })
    }

    fn after(&self, life: Position, seq: u64) -> Reader {
        let after = Some(Cursor { life, seq });
        Reader::new(&self.latest, &EventQuery { after, follow: true, since: None })
    }
}

/// What a reader gets until nothing is there: `added` of each event, and how many were lost as a negative number.
fn all(reader: &mut Reader) -> Vec<i64> {
    let mut told = Vec::new();
    while let Step::Lines(lines) = reader.step(BootTime(0)) {
        told.extend(lines.lines().map(|line| match EventLine::read(line).unwrap().notice {
            Notice::Resynced { added, .. } => i64::try_from(added).unwrap(),
            Notice::Lost { sink, .. } => -i64::try_from(sink["follower"]).unwrap(),
            other => panic!("{other:?}"),
        }));
    }
    told
}

fn numbers(range: std::ops::Range<i64>) -> Vec<i64> {
    range.collect()
}

/// More than is in memory.
const MANY: u64 = 10_000;

#[test]
fn from_the_files_into_memory_without_a_seam() {
    let dir = tempfile::tempdir().unwrap();
    let mut life = Life::begin(dir.path());
    life.tell(0..MANY);
    assert!(life.latest.ring().first > 1, "everything is in memory");
    let mut reader = life.reader(None, true);
    // That which only follows sees nothing of it.
    assert!(all(&mut reader).is_empty());
    let mut reader = life.reader(Some(100), true);
    assert_eq!(all(&mut reader), numbers(100..10_000));
    assert!(reader.is_fast());
    life.tell(MANY..MANY + 3);
    assert_eq!(all(&mut reader), [10_000, 10_001, 10_002]);
    // Slow: what is no longer in memory is in the files.
    life.tell(MANY + 3..3 * MANY);
    assert!(!reader.is_fast());
    assert_eq!(all(&mut reader), numbers(10_003..30_000));
    assert_eq!(all(&mut life.reader(None, false)), numbers(0..30_000));
}

/// More than all files have room for.
const MORE: u64 = 180_000;

#[test]
fn what_is_in_no_file_any_more_is_told_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut life = Life::begin(dir.path());
    let mut reader = life.reader(None, true);
    life.tell(0..5);
    assert_eq!(all(&mut reader), numbers(0..5));
    // More than all files together.
    life.tell(5..MORE);
    let told = all(&mut reader);
    assert!(told[0] < 0, "{:?}", &told[..3]);
    assert_eq!(5 - told[0], told[1], "exactly as many as are missing");
    assert_eq!(told.last(), Some(&(i64::try_from(MORE).unwrap() - 1)));
    assert!(told[1..].windows(2).all(|pair| pair[0] + 1 == pair[1]));
    let files = fs::read_dir(dir.path()).unwrap().flatten();
    let sizes: Vec<u64> = files.map(|file| file.metadata().unwrap().len()).collect();
    assert_eq!(sizes.len(), segments::KEPT);
    assert!(sizes.iter().sum::<u64>() < 18 << 20, "{sizes:?}");
}

#[test]
fn without_files_there_is_what_is_in_memory() {
    // No directory can be made below a file.
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut life = Life::begin(&file.path().join("state"));
    life.tell(0..3);
    assert_eq!(all(&mut life.reader(None, false)), [0, 1, 2]);
    let mut reader = life.reader(None, true);
    life.tell(3..MANY);
    let told = all(&mut reader);
    assert_eq!((3 - told[0], *told.last().unwrap()), (told[1], 9_999));
}

#[test]
fn a_reader_continues_with_the_next_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Life::begin(dir.path());
    first.tell(0..10);
    let began = first.latest.life();
    // Its connection broke, and the same daemon is there.
    assert_eq!(all(&mut first.after(began, 4)), numbers(4..10));
    first.tell(10..MANY);
    assert_eq!(all(&mut first.after(began, 4)), numbers(4..10_000));
    drop(first);
    // Killed in the middle of a line.
    let file = dir.path().join("events-1.ndjson");
    fs::write(&file, [fs::read(&file).unwrap(), br#"{"event":"resy"#.to_vec()].concat()).unwrap();
    let mut second = Life::begin(dir.path());
    second.tell(20_000..20_003);
    let mut reader = second.after(began, 9_998);
    assert_eq!(all(&mut reader), [9_998, 9_999, 20_000, 20_001, 20_002]);
    // Everything was read.
    assert_eq!(all(&mut second.after(began, MANY)), [20_000, 20_001, 20_002]);
    assert_eq!(all(&mut second.after(second.latest.life(), 2)), [20_002]);
    // A position of other files.
    assert_eq!(all(&mut second.after(Position { file: 99, offset: 0 }, 7)), [20_000, 20_001, 20_002]);
    let mut kept = 0;
    let damaged = stored(dir.path(), None, |_| {
        kept += 1;
        true
    });
    assert_eq!((kept, damaged.unwrap()), (MANY + 3, 1), "with the line that was cut off");
}

#[test]
fn a_full_disk_costs_the_files_only() {
    let dir = tempfile::tempdir().unwrap();
    let mut life = Life::begin(dir.path());
    life.tell(0..3);
    // As if the disk had been full: these lines are in memory alone.
    let files = life.keeper.files.take();
    life.tell(3..6);
    life.keeper.files = files;
    life.tell(6..9);
    assert_eq!(all(&mut life.reader(None, false)), numbers(0..9));
    // Once they have left memory nobody has them, and that is told.
    life.tell(9..MANY);
    let told = all(&mut life.reader(None, false));
    assert_eq!(told[..6], [0, 1, 2, -3, 6, 7]);
    assert_eq!(told.last(), Some(&9_999));
}

#[test]
fn a_line_is_read_back() {
    let mut line = String::new();
    let wall = WallClock { offset_ns: 1_785_153_600_000_000_000 };
    let notice = Notice::Stopping { agents: 1, servers: 2, orphans: 3 };
    Json::after(wall, 41).write(BootTime(93_000_042_000), &notice, &mut line);
    let read = EventLine::read(line.trim_end()).unwrap();
    assert_eq!(read, EventLine { seq: 42, at: BootTime(93_000_042_000), wall, notice });
    assert_eq!(seq(line.trim_end()), Some(42));
    for no_line in ["", "{", r#"{"event":"x","seq":1,"#, r#"{"event":"x","seq":"1"}"#] {
        assert_eq!(seq(no_line), None, "{no_line}");
    }
    assert_eq!(
        EventLine::read(r#"{"event":"unheard_of","seq":1,"time":"2026-01-01T00:00:00Z","boot_ns":1}"#),
        None
    );
}

#[test]
fn what_no_daemon_has_written_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(format!("events-{name}.ndjson"));
    fs::write(path("18446744073709551615"), "").unwrap();
    fs::create_dir(path("8")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path("7"), rustix::fs::Mode::RUSR).unwrap();
    // Without the end of a line, and more than there is memory for.
    fs::File::create(path("1")).unwrap().set_len(1 << 40).unwrap();
    let mut life = Life::begin(dir.path());
    life.tell(1..4);
    drop(life);
    let mut found = Vec::new();
    stored(dir.path(), None, |line| {
        found.extend(seq(line));
        true
    })
    .unwrap();
    assert_eq!(found, [1, 2, 3]);
    assert!(path("2").is_file());
}

//! Readers that read, stall, and go away. Real pipes; the reader is the barrier, nobody sleeps.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    os::fd::OwnedFd,
    time::Instant,
};

use serde_json::Value;

use super::*;
use crate::sink::{stream::Json, wall::Wall};

const PATIENCE: Duration = Duration::from_secs(20);

fn pipe() -> (BufReader<File>, OwnedFd) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    (BufReader::new(File::from(read)), write)
}

/// A pipe with no room left in it, so that the writer waits for the reader from the start. What fills it are
/// line feeds.
fn full_pipe() -> (BufReader<File>, OwnedFd) {
    let (read, write) = pipe();
    rustix::io::ioctl_fionbio(&write, true).unwrap();
    while rustix::io::write(&write, b"\n").is_ok() {}
    rustix::io::ioctl_fionbio(&write, false).unwrap();
    (read, write)
}

fn outlet(write: OwnedFd, capacity: usize) -> Outlet {
    Outlet::start("stream", write, Json::new(Wall::default()), capacity).unwrap()
}

fn push(outlet: &Outlet, number: u64) {
    outlet.push(BootTime(number), Box::new(Notice::Resynced { added: number, removed: 0 }));
}

/// Fills the queue, until a notice is dropped; how many were pushed.
fn stall(outlet: &Outlet) -> u64 {
    let mut pushed = 0;
    while outlet.dropped() == 0 {
        push(outlet, pushed);
        pushed += 1;
        // The writer may still take a batch from the queue: let it.
        thread::yield_now();
    }
    pushed
}

/// `seq` has no gap; the numbers of the notices that came, and those that `lost` lines say are missing.
fn account(lines: &str) -> (Vec<u64>, u64) {
    let (mut came, mut lost) = (Vec::new(), 0);
    for (n, line) in lines.lines().filter(|line| !line.is_empty()).enumerate() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["seq"], n + 1);
        match value["event"].as_str().unwrap() {
            "resynced" => {
                let number = value["added"].as_u64().unwrap();
                assert_eq!(number, came.len() as u64 + lost, "the gap is where the lost line stands");
                came.push(number);
            }
            "lost" => lost += value["sink"]["stream"].as_u64().unwrap(),
            other => panic!("{other}"),
        }
    }
    (came, lost)
}

#[test]
fn lines_arrive_in_order() {
    let (mut read, write) = pipe();
    let outlet = outlet(write, 64);
    let mut line = String::new();
    for number in 0..10 {
        push(&outlet, number);
        read.read_line(&mut line).unwrap();
    }
    assert!(outlet.finish(PATIENCE));
    let (came, lost) = account(&line);
    assert_eq!((came.len(), lost), (10, 0));
}

#[test]
fn a_stalled_reader_costs_lines_and_is_told_how_many() {
    let (mut read, write) = full_pipe();
    let outlet = outlet(write, 8);
    let mut pushed = stall(&outlet);
    for _ in 0..5 {
        push(&outlet, pushed);
        pushed += 1;
    }
    let dropped = outlet.dropped();
    let reader = thread::spawn(move || {
        let mut lines = String::new();
        read.read_to_string(&mut lines).unwrap();
        lines
    });
    assert!(outlet.finish(PATIENCE));
    let (came, lost) = account(&reader.join().unwrap());
    assert_eq!(lost, dropped);
    assert_eq!(came.len() as u64 + lost, pushed);
}

#[test]
fn lines_flow_again_after_a_stall() {
    let (mut read, write) = full_pipe();
    let outlet = outlet(write, 8);
    let mut pushed = stall(&outlet);
    let (mut lines, mut lost) = (String::new(), false);
    // The lost line comes by itself, without another notice behind it.
    while !lost {
        let from = lines.len();
        read.read_line(&mut lines).unwrap();
        lost = lines[from..].contains(r#""event":"lost""#);
    }
    push(&outlet, pushed);
    pushed += 1;
    read.read_line(&mut lines).unwrap();
    assert!(outlet.finish(PATIENCE));
    let (came, lost) = account(&lines);
    assert_eq!(came.len() as u64 + lost, pushed);
    assert_eq!(came.last(), Some(&(pushed - 1)));
}

#[test]
fn a_stalled_reader_does_not_hold_up_the_end() {
    let (read, write) = full_pipe();
    let outlet = outlet(write, 8);
    stall(&outlet);
    let began = Instant::now();
    assert!(!outlet.finish(Duration::from_millis(30)));
    assert!(began.elapsed() < PATIENCE);
    drop(read);
}

#[test]
fn a_reader_that_went_away_is_no_end() {
    let (read, write) = pipe();
    let outlet = outlet(write, 8);
    drop(read);
    let mut pushed = 0;
    while !outlet.closed() {
        push(&outlet, pushed);
        pushed += 1;
        thread::yield_now();
    }
    push(&outlet, pushed);
    assert_eq!(outlet.dropped(), pushed + 1, "nothing was written, so everything was dropped");
    assert!(!outlet.finish(PATIENCE), "not everything was written");
}

#[test]
fn a_full_disk_is_a_reader_that_went_away() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let outlet = Outlet::start("stream", full, Json::new(Wall::default()), 8).unwrap();
    push(&outlet, 0);
    let shared = Arc::clone(&outlet.shared);
    assert!(!outlet.finish(PATIENCE));
    assert!(shared.lock().closed);
}

#[test]
fn a_non_blocking_pipe_is_waited_for() {
    let (mut read, write) = pipe();
    rustix::io::ioctl_fionbio(&write, true).unwrap();
    let outlet = outlet(write, 100_000);
    for number in 0..2_000 {
        push(&outlet, number);
    }
    let reader = thread::spawn(move || {
        let mut lines = String::new();
        read.read_to_string(&mut lines).unwrap();
        lines
    });
    assert!(outlet.finish(PATIENCE));
    assert_eq!(account(&reader.join().unwrap()).0.len(), 2_000);
}

/// From the engine's hand to the reader's. Printed, not judged: the machine may be busy.
#[test]
fn latency() {
    let (mut read, write) = pipe();
    let outlet = outlet(write, 64);
    let mut line = String::new();
    let mut times: Vec<Duration> = (0..1_000)
        .map(|number| {
            let began = Instant::now();
            push(&outlet, number);
            line.clear();
            read.read_line(&mut line).unwrap();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    eprintln!("push to read: p50 {:?}, p99 {:?}, max {:?}", times[500], times[990], times[999]);
    assert!(outlet.finish(PATIENCE));
}

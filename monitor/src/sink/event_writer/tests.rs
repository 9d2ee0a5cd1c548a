//! Readers that read, stall, and go away. Real pipes; the tests wait for the reader and never sleep.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    os::fd::OwnedFd,
    thread,
    time::Instant,
};

use serde_json::Value;

use super::*;
use crate::sink::{stream::Json, wall_clock::WallClock};

const PATIENCE: Duration = Duration::from_secs(20);

fn pipe() -> (BufReader<File>, OwnedFd) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    (BufReader::new(File::from(read)), write)
}

/// A full pipe, so that the writer must wait for the reader from the start. It is filled with line feeds.
fn full_pipe() -> (BufReader<File>, OwnedFd) {
    let (read, write) = pipe();
    rustix::io::ioctl_fionbio(&write, true).unwrap();
    while rustix::io::write(&write, b"\n").is_ok() {}
    rustix::io::ioctl_fionbio(&write, false).unwrap();
    (read, write)
}

fn writer(write: OwnedFd, capacity: usize) -> EventWriter {
    EventWriter::start("stream", write, Box::new(Json::new(WallClock::default())), capacity).unwrap()
}

fn push(writer: &EventWriter, number: u64) {
    writer.push(BootTime(number), Box::new(Notice::Resynced { added: number, removed: 0 }));
}

/// Fills the queue until a notice is dropped. Returns how many were pushed.
fn stall(writer: &EventWriter) -> u64 {
    let mut pushed = 0;
    while writer.dropped() == 0 {
        push(writer, pushed);
        pushed += 1;
        // The writer may still take a batch from the queue.
        thread::yield_now();
    }
    pushed
}

/// Checks that `seq` has no gap. Returns the numbers of the notices that arrived, and how many `lost` lines
/// say are missing.
fn read_numbers(lines: &str) -> (Vec<u64>, u64) {
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
    let writer = writer(write, 64);
    let mut line = String::new();
    for number in 0..10 {
        push(&writer, number);
        read.read_line(&mut line).unwrap();
    }
    assert!(writer.finish(PATIENCE));
    let (came, lost) = read_numbers(&line);
    assert_eq!((came.len(), lost), (10, 0));
}

#[test]
fn a_stalled_reader_costs_lines_and_is_told_how_many() {
    let (mut read, write) = full_pipe();
    let writer = writer(write, 8);
    let mut pushed = stall(&writer);
    for _ in 0..5 {
        push(&writer, pushed);
        pushed += 1;
    }
    let dropped = writer.dropped();
    let reader = thread::spawn(move || {
        let mut lines = String::new();
        read.read_to_string(&mut lines).unwrap();
        lines
    });
    assert!(writer.finish(PATIENCE));
    let (came, lost) = read_numbers(&reader.join().unwrap());
    assert_eq!(lost, dropped);
    assert_eq!(came.len() as u64 + lost, pushed);
}

#[test]
fn lines_flow_again_after_a_stall() {
    let (mut read, write) = full_pipe();
    let writer = writer(write, 8);
    let mut pushed = stall(&writer);
    let (mut lines, mut lost) = (String::new(), false);
    // The lost line arrives without another notice after it.
    while !lost {
        let from = lines.len();
        read.read_line(&mut lines).unwrap();
        lost = lines[from..].contains(r#""event":"lost""#);
    }
    push(&writer, pushed);
    pushed += 1;
    read.read_line(&mut lines).unwrap();
    assert!(writer.finish(PATIENCE));
    let (came, lost) = read_numbers(&lines);
    assert_eq!(came.len() as u64 + lost, pushed);
    assert_eq!(came.last(), Some(&(pushed - 1)));
}

#[test]
fn a_stalled_reader_does_not_hold_up_the_end() {
    let (read, write) = full_pipe();
    let writer = writer(write, 8);
    stall(&writer);
    let began = Instant::now();
    assert!(!writer.finish(Duration::from_millis(30)));
    assert!(began.elapsed() < PATIENCE);
    drop(read);
}

#[test]
fn a_reader_that_went_away_is_no_end() {
    let (read, write) = pipe();
    let writer = writer(write, 8);
    drop(read);
    crate::os::forks_of_tests::settle();
    let mut pushed = 0;
    while !lock(&writer.state).closed {
        push(&writer, pushed);
        pushed += 1;
        thread::yield_now();
    }
    push(&writer, pushed);
    assert_eq!(writer.dropped(), pushed + 1, "nothing was written, so everything was dropped");
    assert!(!writer.finish(PATIENCE), "not everything was written");
}

#[test]
fn a_full_disk_is_a_reader_that_went_away() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let writer = EventWriter::start("stream", full, Box::new(Json::new(WallClock::default())), 8).unwrap();
    push(&writer, 0);
    let state = Arc::clone(&writer.state);
    assert!(!writer.finish(PATIENCE));
    assert!(lock(&state).closed);
}

#[test]
fn a_non_blocking_pipe_is_waited_for() {
    let (mut read, write) = pipe();
    rustix::io::ioctl_fionbio(&write, true).unwrap();
    let writer = writer(write, 100_000);
    for number in 0..2_000 {
        push(&writer, number);
    }
    let reader = thread::spawn(move || {
        let mut lines = String::new();
        read.read_to_string(&mut lines).unwrap();
        lines
    });
    assert!(writer.finish(PATIENCE));
    assert_eq!(read_numbers(&reader.join().unwrap()).0.len(), 2_000);
}

/// The time from the engine to the reader. It is printed and not asserted, because the machine may be busy.
#[test]
fn latency() {
    let (mut read, write) = pipe();
    let writer = writer(write, 64);
    let mut line = String::new();
    let mut times: Vec<Duration> = (0..1_000)
        .map(|number| {
            let began = Instant::now();
            push(&writer, number);
            line.clear();
            read.read_line(&mut line).unwrap();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    eprintln!("push to read: p50 {:?}, p99 {:?}, max {:?}", times[500], times[990], times[999]);
    assert!(writer.finish(PATIENCE));
}

//! The mechanism of helpers, with this program as its own helper: what becomes of one that crashes, hangs, floods or
//! talks nonsense, and which rights one has.
//!
//! As root it changes users, too.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test relies on is checked by it")]

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, Write as _},
    os::fd::OwnedFd,
    process::ExitCode,
    time::{Duration, Instant},
};

use orphand::{
    helper::{self, Cost, HelperError, Order, Task},
    os::processor_time::Meter,
};
use rustix::{
    event::{EventfdFlags, eventfd},
    process::{Resource, geteuid, getrlimit},
};

/// What a helper is told to do.
fn play(what: &str, files: Vec<OwnedFd>) -> Vec<String> {
    match what {
        "status" => fs::read_to_string("/proc/self/status").unwrap().lines().map(str::to_owned).collect(),
        "score" => vec![fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().to_owned()],
        "limits" => [
            Resource::Data,
            Resource::Stack,
            Resource::Cpu,
            Resource::Nofile,
            Resource::Fsize,
            Resource::Core,
        ]
        .map(|resource| format!("{:?}", getrlimit(resource).maximum))
        .to_vec(),
        "files" => {
            let read = |file: OwnedFd| {
                let mut text = String::new();
                File::from(file).read_to_string(&mut text).map(|_| text).unwrap_or_default()
            };
            files.into_iter().map(read).collect()
        }
        "overflow" => vec![deeper(1).to_string()],
        "abort" => std::process::abort(),
        "panic" => panic!("as it was told"),
        "memory" => vec![vec![1_u8; 2 << 30].len().to_string()],
        "work" => loop {
            std::hint::spin_loop();
        },
        "hang" => loop {
            std::thread::park();
        },
        "flood" => vec!["x".repeat(1 << 20)],
        _ => vec![what.to_owned()],
    }
}

/// Without end.
#[expect(unconditional_recursion, reason = "this is what is tested")]
fn deeper(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 512]);
    deeper(depth + 1) + room.iter().sum::<u64>()
}

fn order(patience: Duration, user: Option<(u32, u32)>, files: Vec<OwnedFd>) -> Order {
    Order { task: Task::Settings, files, user, namespace: None, patience }
}

fn ask(what: &str, user: Option<(u32, u32)>) -> Result<Vec<String>, HelperError> {
    helper::ask(order(Duration::from_secs(20), user, Vec::new()), &what)
}

fn value<'a>(status: &'a [String], name: &str) -> &'a str {
    let line = status.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    line.unwrap().trim()
}

fn it_answers_and_reads_what_it_is_given() {
    assert_eq!(ask("hello", None).unwrap(), ["hello"]);
    let files = (0..helper::FILES).map(|number| {
        let mut file = tempfile::tempfile().unwrap();
        write!(file, "{number}").unwrap();
        file.rewind().unwrap();
        OwnedFd::from(file)
    });
    let said: Vec<String> =
        helper::ask(order(Duration::from_secs(20), None, files.collect()), &"files").unwrap();
    assert_eq!(said, (0..helper::FILES).map(|number| number.to_string()).collect::<Vec<_>>());
}

fn it_has_no_rights_and_bounds(user: Option<(u32, u32)>) {
    let status = ask("status", user).unwrap();
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(value(&status, set), "0000000000000000", "{set}");
    }
    assert_eq!(value(&status, "NoNewPrivs"), "1");
    if let Some((uid, gid)) = user {
        // That user cannot trace it from its execve(2) on.
        for (name, [real, other]) in [("Uid", [helper::NOBODY, uid]), ("Gid", [gid, gid])] {
            assert_eq!(value(&status, name), format!("{real}\t{other}\t{other}\t{other}"));
        }
        assert_eq!(value(&status, "Groups"), "");
    }
    let score = ask("score", user).unwrap().concat();
    assert!(!score.starts_with('-'), "it has our protection from the OOM killer: {score}");
    let limits = ask("limits", user).unwrap();
    let number = |limit: &String| limit.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap();
    let limits: Vec<u64> = limits.iter().map(number).collect();
    let most = [160 << 20, 8 << 20, 2, 256, 64 << 10, 0];
    assert!(limits.iter().zip(most).all(|(is, most)| *is <= most), "{limits:?}");
}

fn whatever_becomes_of_it_is_an_error() {
    for what in ["overflow", "abort", "panic", "memory", "flood"] {
        let error = ask(what, None).unwrap_err();
        assert!(matches!(error, HelperError::Failed(_)), "{what}: {error}");
    }
    let answer: Result<u32, HelperError> =
        helper::ask(order(Duration::from_secs(20), None, Vec::new()), &"no number");
    assert!(matches!(answer.unwrap_err(), HelperError::Failed(_)));
    // After all that the next one answers.
    assert_eq!(ask("hello", None).unwrap(), ["hello"]);
}

fn one_that_hangs_is_ended_in_time() {
    let (begun, children) = (Instant::now(), children());
    let patience = Duration::from_millis(300);
    let answer: Result<Vec<String>, HelperError> = helper::ask(order(patience, None, Vec::new()), &"hang");
    assert!(matches!(answer.unwrap_err(), HelperError::Silent(_)));
    assert!(begun.elapsed() >= patience);
    assert_eq!(self::children(), children, "it was not waited for");
}

fn one_that_works_without_end_is_ended_by_the_kernel_and_charged() {
    let meter = Meter::begin();
    let answer: Result<Vec<String>, HelperError> =
        helper::ask(order(Duration::from_secs(120), None, Vec::new()), &"work");
    assert!(matches!(answer.unwrap_err(), HelperError::Failed(_)));
    let spent = meter.spent();
    assert!(spent > Duration::from_millis(1500) && spent < Duration::from_secs(10), "{spent:?}");
}

fn a_text_that_takes_too_long_is_left_and_charged() {
    let before = children();
    let read = |file: OwnedFd, most| {
        let mut cost = Cost::default();
        let read = helper::read(&file, most, || None, &mut cost);
        (read.map(|text| text.len()), cost)
    };
    let (told, cost) = read(File::open("/dev/urandom").unwrap().into(), 100 << 20);
    assert!(told.is_err() && cost.worked >= Duration::from_millis(50), "{told:?}, {cost:?}");
    // Nobody adds to its counter.
    let counter = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let (told, cost) = read(counter, 64);
    assert!(told.is_err() && cost.slept >= Duration::from_millis(250), "{told:?}, {cost:?}");
    assert_eq!(children(), before, "it was not waited for");
    // One that has answered stays, and answers again.
    let file = || OwnedFd::from(File::open("/proc/self/comm").unwrap());
    let comm = fs::read("/proc/self/comm").unwrap().len();
    assert_eq!(read(file(), 100).0, Ok(comm));
    let one = children();
    assert_eq!((read(file(), 2).0, children()), (Ok(3), one));
    let (reader, _) = std::io::pipe().unwrap();
    assert_eq!(read(reader.into(), 4).0, Ok(0));
}

/// The processes that are our children, zombies included.
fn children() -> String {
    fs::read_to_string("/proc/thread-self/children").unwrap()
}

fn main() -> ExitCode {
    helper::can_serve();
    if std::env::args().nth(1).is_some_and(|first| first == helper::ARGUMENT) {
        let work = |_, question: &[u8], files| helper::answered(question, |what: String| play(&what, files));
        return if helper::serve(work) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // Nothing is listed for those who ask for single tests.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    // As the service has it, where that is allowed.
    let _ = fs::write("/proc/self/oom_score_adj", "-100");
    it_answers_and_reads_what_it_is_given();
    it_has_no_rights_and_bounds(None);
    if geteuid().is_root() {
        assert!(helper::can_be_others());
        it_has_no_rights_and_bounds(Some((64_007, 64_008)));
    }
    whatever_becomes_of_it_is_an_error();
    one_that_hangs_is_ended_in_time();
    one_that_works_without_end_is_ended_by_the_kernel_and_charged();
    a_text_that_takes_too_long_is_left_and_charged();
    println!("test result: ok. helpers");
    ExitCode::SUCCESS
}

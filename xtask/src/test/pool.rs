//! Runs tests side by side, each in a process of its own, and says how far it is.
//!
//! What a test prints is shown if it fails. A process of its own, because a program that is written while another thread
//! forks cannot be run (`ETXTBSY`, execve(2)).

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, File},
    io::{IsTerminal as _, Write as _, stderr},
    ops::Add,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use crate::{files, workspace};

/// Between two words on how far it is, where nothing ends.
const WORD: Duration = Duration::from_secs(1);

/// What is run: a test, or a program with all of its tests.
#[derive(Debug)]
pub struct Job {
    /// Its name, for people: the program, and the test.
    pub name: String,
    /// What runs it.
    pub command: Command,
}

/// What a thread tells.
enum Told {
    Began(String),
    Ended(Box<Job>, Duration, String, bool),
}

/// What came of a round.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Of those that ended well.
    pub passed: Count,
    /// Those that did not.
    pub failed: Vec<Job>,
    /// What came of these.
    pub lost: Count,
}

impl Outcome {
    /// What came of all.
    pub fn count(&self) -> Count {
        self.passed + self.lost
    }

    /// Runs those that failed once more, each with the host for itself. One that passes then does not stand its neighbours:
    /// that is a defect of the test, which is told, and no failure of the product.
    pub fn again_alone(self) -> Result<Count> {
        let names: Vec<String> = self.failed.iter().map(|job| job.name.clone()).collect();
        let again = run("those that failed once more, one by one", Vec::new(), self.failed, 1)?;
        for name in names.iter().filter(|name| again.failed.iter().all(|job| job.name != **name)) {
            println!(
                "UNSTEADY          {name}: it failed beside others and passed alone; mend it, or see alone.rs"
            );
        }
        Ok(self.passed + again.count())
    }
}

/// Runs them, so many at a time and in this order; of each list in `in_turn` one at a time. `round` is what they are called.
pub fn run(round: &str, in_turn: Vec<Vec<Job>>, jobs: Vec<Job>, at_a_time: usize) -> Result<Outcome> {
    let all = in_turn.iter().flatten().chain(&jobs).count();
    if all == 0 {
        return Ok(Outcome::default());
    }
    // Nobody else's: the tests of this module run while a round does.
    let folder = format!("test-output/{}-{}", std::process::id(), round.replace(' ', "-"));
    let folder = workspace::target_dir()?.join(folder);
    files::folder(&folder)?;
    let mut board = Board::new(round, all);
    let mut in_turn = in_turn.into_iter();
    let jobs = Mutex::new(VecDeque::from(jobs));
    let (tell, told) = channel();
    thread::scope(|scope| {
        for slot in 0..at_a_time {
            let (tell, jobs, file) = (tell.clone(), &jobs, folder.join(slot.to_string()));
            let mut own: Vec<_> = in_turn.next().into_iter().collect();
            if slot + 1 == at_a_time {
                own.extend(in_turn.by_ref());
            }
            scope.spawn(move || {
                for list in own {
                    work(&Mutex::new(VecDeque::from(list)), &file, &tell);
                }
                work(jobs, &file, &tell);
            });
        }
        drop(tell);
        loop {
            match told.recv_timeout(WORD) {
                Ok(Told::Began(name)) => drop(board.running.insert(name, Instant::now())),
                Ok(Told::Ended(job, took, printed, well)) => board.ended(*job, took, &printed, well),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            board.show();
        }
    });
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    Ok(board.close())
}

/// Takes one job after the other.
fn work(queue: &Mutex<VecDeque<Job>>, file: &Path, tell: &Sender<Told>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(mut job) = next() {
        let _ = tell.send(Told::Began(job.name.clone()));
        let began = Instant::now();
        let played = play(&mut job.command, file);
        let (printed, well) = played.unwrap_or_else(|error| (format!("{error:#}\n"), false));
        let _ = tell.send(Told::Ended(Box::new(job), began.elapsed(), printed, well));
    }
}

/// Gives what it printed, and whether it ended well. Printed to a file: the end of a pipe would be that of the last process
/// that has it.
pub fn play(command: &mut Command, file: &Path) -> Result<(String, bool)> {
    let out = File::create(file).with_context(|| format!("cannot create {}", file.display()))?;
    let copy = out.try_clone().context("cannot copy a descriptor")?;
    let status = command.stdin(Stdio::null()).stdout(out).stderr(copy).status();
    let status = status.with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let printed = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok((String::from_utf8_lossy(&printed).into_owned(), status.success()))
}

/// What came of the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
    /// Processes that ended in failure, for whatever reason: one that crashed counts no test.
    pub broken: u64,
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            broken: self.broken + other.broken,
        }
    }
}

impl Count {
    /// By what a test program printed, in lines such as `test result: ok. 9 passed; 0 failed; 1 ignored; 0 measured; ..`,
    /// and whether it ended well.
    pub fn of(printed: &str, well: bool) -> Self {
        let results = printed.lines().filter_map(|line| line.strip_prefix("test result: ")?.split_once(". "));
        let parts: Vec<_> = results
            .flat_map(|(_, counts)| counts.split("; "))
            .filter_map(|part| part.split_once(' '))
            .collect();
        let sum = |what: &str| {
            parts.iter().filter(|part| part.1 == what).map(|part| part.0.parse().unwrap_or(0)).sum::<u64>()
        };
        Self { passed: sum("passed"), failed: sum("failed"), broken: u64::from(!well) }
    }

    /// Says it, and whether it is good.
    pub fn judge(&self, filter: Option<&str>) -> Result<()> {
        println!("\nxtask: {} passed, {} failed", self.passed, self.failed);
        let Self { passed, failed, broken } = self;
        ensure!(failed + broken == 0, "{failed} tests failed, {broken} test programs ended in failure");
        ensure!(*passed > 0, "no test was run; is there one named like {:?}?", filter.unwrap_or_default());
        Ok(())
    }
}

/// How far it is.
struct Board {
    round: String,
    all: usize,
    ended: usize,
    began: Instant,
    running: BTreeMap<String, Instant>,
    outcome: Outcome,
    /// Why those that failed did.
    reasons: Vec<String>,
    terminal: bool,
}

impl Board {
    fn new(round: &str, all: usize) -> Self {
        let board = Self {
            round: round.to_owned(),
            all,
            ended: 0,
            began: Instant::now(),
            running: BTreeMap::new(),
            outcome: Outcome::default(),
            reasons: Vec::new(),
            terminal: stderr().is_terminal(),
        };
        if !board.terminal {
            eprintln!("test: {round}: {all} to run");
        }
        board
    }

    fn ended(&mut self, job: Job, took: Duration, printed: &str, well: bool) {
        self.ended += 1;
        self.running.remove(&job.name);
        let count = Count::of(printed, well);
        // Of programs that have no test of this round nothing is said.
        let silent = self.terminal || count == Count::default();
        self.clear();
        if well {
            // Such as what it had to do once more: the sign of a defect to come.
            printed.lines().filter(|line| line.starts_with("NOTE ")).for_each(|line| println!("{line}"));
        } else {
            print!("{printed}");
        }
        if !well || !silent {
            println!("{} {:6.1} s  {}", if well { "ok    " } else { "FAILED" }, took.as_secs_f64(), job.name);
        }
        if well {
            self.outcome.passed = self.outcome.passed + count;
        } else {
            self.outcome.lost = self.outcome.lost + count;
            self.reasons.push(format!("{}: {}", job.name, reason(printed)));
            self.outcome.failed.push(job);
        }
    }

    /// One line, written over again and again, where a person looks at it.
    fn show(&self) {
        if !self.terminal {
            return;
        }
        let width = rustix::termios::tcgetwinsize(stderr()).map_or(80, |size| usize::from(size.ws_col));
        let line: String = self.line().chars().take(width.saturating_sub(1)).collect();
        let mut out = stderr();
        let _ = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
    }

    fn line(&self) -> String {
        let Self { round, all, ended, .. } = self;
        let failed = match self.outcome.failed.len() {
            0 => String::new(),
            n => format!(", {n} failed"),
        };
        let running =
            self.running.iter().map(|(name, since)| format!("{name} {} s", since.elapsed().as_secs()));
        let (running, seconds) = (running.collect::<Vec<_>>().join(", "), self.began.elapsed().as_secs());
        format!("test: {round}: {ended} of {all}{failed}, {seconds} s: {running}")
    }

    fn clear(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }

    fn close(self) -> Outcome {
        self.clear();
        let failed: Vec<&str> = self.outcome.failed.iter().map(|job| job.name.as_str()).collect();
        let failed = if failed.is_empty() { "none failed".into() } else { failed.join(", ") + " failed" };
        let seconds = self.began.elapsed().as_secs_f64();
        eprintln!("test: {}: {} run in {seconds:.0} s; {failed}", self.round, self.ended);
        // Once more, below the thousands of lines in which they are.
        for reason in &self.reasons {
            eprintln!("test: {reason}");
        }
        self.outcome
    }
}

/// Why a test failed, by what it printed: what follows the first panic or error, up to the backtrace.
fn reason(printed: &str) -> String {
    const LINES: usize = 12;
    const WIDTH: usize = 300;
    let is_reason = |line: &&str| line.starts_with("Error: ") || line.contains(" panicked at ");
    let lines = printed.lines().skip_while(|line| !is_reason(line));
    let lines = lines.take_while(|line| !line.to_lowercase().contains("stack backtrace"));
    let lines = lines.take(LINES).map(|line| line.chars().take(WIDTH).collect::<String>());
    lines.collect::<Vec<_>>().join("\n      ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failure_is_what_it_says_before_the_backtrace() {
        let printed = "running 1 test\nError: judged wrongly:\na/b WRONG\n\nStack backtrace:\n   0: x\n";
        assert_eq!(reason(printed), "Error: judged wrongly:\n      a/b WRONG");
        let printed = "test a ... FAILED\n\nthread 'a' (7) panicked at a.rs:1:2:\nwhy\nstack backtrace:\n";
        assert_eq!(reason(printed), "thread 'a' (7) panicked at a.rs:1:2:\n      why");
    }

    fn shell(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { name: name.into(), command }
    }

    #[test]
    fn all_are_run_and_counted() {
        let passed = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
        let jobs = vec![shell("a", passed), shell("b", "echo because; exit 1")];
        assert_eq!(
            run("unit", vec![vec![shell("c", passed)]], jobs, 2).unwrap().count(),
            Count { passed: 4, failed: 0, broken: 1 }
        );
    }

    #[test]
    fn who_fails_beside_others_has_a_second_chance_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark").display().to_string();
        let well = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let bad = "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        let unsteady =
            format!("if [ -e {mark} ]; then echo '{well}'; else touch {mark}; echo '{bad}'; exit 1; fi");
        let jobs = vec![shell("unsteady", &unsteady), shell("broken", &format!("echo '{bad}'; exit 1"))];
        let outcome = run("unit again", Vec::new(), jobs, 2).unwrap();
        assert_eq!((outcome.failed.len(), outcome.lost.failed), (2, 2));
        assert_eq!(outcome.again_alone().unwrap(), Count { passed: 1, failed: 1, broken: 1 });
    }

    #[test]
    fn two_run_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe").display().to_string();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        // Each waits for the other.
        let jobs = vec![shell("a", &format!("echo x > {pipe}")), shell("b", &format!("read -r x < {pipe}"))];
        assert_eq!(run("unit pair", Vec::new(), jobs, 2).unwrap().count(), Count::default());
    }

    #[test]
    fn what_is_printed_is_whole_and_a_failure_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let told = play(&mut shell("", "echo out; echo err >&2; exit 3").command, &file).unwrap();
        assert_eq!(told, ("out\nerr\n".to_owned(), false));
    }

    #[test]
    fn reads_the_closing_lines_of_test_programs() {
        let first = "running 9 tests\ntest a::b ... ok\n\
            test result: ok. 9 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        let second = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out\n";
        let count = Count::of(first, true) + Count::of(second, false);
        assert_eq!(count, Count { passed: 12, failed: 2, broken: 1 });
        assert!(count.judge(None).is_err());
    }
}

//! Measures the idle daemon, on a host with a thousand processes.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::{
    Bench,
    table::{Table, median},
};
use crate::command;

/// Processes on the host when the daemon is measured at rest.
const PROCESSES: usize = 1_000;

/// Memory, wake-ups and CPU time at rest, and time to start.
pub fn rest(bench: &Bench<'_>) -> Result<Table> {
    let crowd = Crowd::start(bench)?;
    let starts: Vec<f64> = (0..bench.args.rounds)
        .map(|_| {
            let daemon = bench.start()?;
            let took = daemon.startup.as_secs_f64() * 1e3;
            daemon.stop().map(|_| took)
        })
        .collect::<Result<_>>()?;

    let daemon = bench.start()?;
    command::say("bench", &format!("rest: {} seconds", bench.args.seconds));
    // What came in while it started is to be done with before the count begins.
    thread::sleep(Duration::from_secs(2));
    let before = Usage::of(daemon.pid())?;
    thread::sleep(Duration::from_secs(bench.args.seconds));
    let after = Usage::of(daemon.pid())?;
    daemon.stop()?;
    drop(crowd);

    #[expect(clippy::cast_precision_loss, reason = "seconds and counts of a bench are few")]
    let per_minute = |count: u64| count as f64 * 60.0 / bench.args.seconds as f64;
    let title = format!("At rest, with {PROCESSES} processes on the host");
    let mut table = Table::new(&title, &["what", "measured", "aim"]);
    let megabytes = format!("{}.{} MB", after.rss_kib / 1024, after.rss_kib % 1024 * 10 / 1024);
    table.row(["resident memory".into(), megabytes, "below 15 MB".into()]);
    table.row([
        "wake-ups a minute".into(),
        format!("{:.1}", per_minute(after.switches - before.switches)),
        String::new(),
    ]);
    table.row([
        "CPU ms a minute".into(),
        format!("{:.0}", per_minute((after.ticks - before.ticks) * 10)),
        String::new(),
    ]);
    table.row([
        "start until `ready`, median".into(),
        format!("{:.0} ms", median(&starts)),
        "below 200 ms".into(),
    ]);
    Ok(table)
}

/// What a process has used.
#[derive(Debug)]
struct Usage {
    rss_kib: u64,
    /// Times it gave up or lost the CPU: each is a wake-up.
    switches: u64,
    /// User and system time in clock ticks of 10 ms.
    ticks: u64,
}

impl Usage {
    fn of(pid: u32) -> Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        Self::parse(&read("status")?, &read("stat")?).context("cannot understand /proc")
    }

    fn parse(status: &str, stat: &str) -> Option<Self> {
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches([':', '\t', ' ']).split_whitespace().next()?.parse().ok()
        };
        // The name may hold anything; after its closing bracket come the fields from the third on.
        let mut after_name = stat.rsplit_once(')')?.1.split_whitespace();
        let user: u64 = after_name.nth(11)?.parse().ok()?;
        let system: u64 = after_name.next()?.parse().ok()?;
        Some(Self {
            rss_kib: field("VmRSS")?,
            switches: field("voluntary_ctxt_switches")? + field("nonvoluntary_ctxt_switches")?,
            ticks: user + system,
        })
    }
}

/// Sleeping processes; they end when their keeper's stdin closes.
struct Crowd(Child);

impl Crowd {
    fn start(bench: &Bench<'_>) -> Result<Self> {
        let present = fs::read_dir("/proc")
            .context("cannot read /proc")?
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
            .count();
        let missing = PROCESSES.saturating_sub(present);
        let mut keeper = Command::new(&bench.actors.stranger)
            .arg("crowd")
            .arg(missing.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a crowd")?;
        let mut said = [0];
        std::io::Read::read_exact(keeper.stdout.as_mut().context("no stdout")?, &mut said)
            .context("the crowd did not gather")?;
        Ok(Self(keeper))
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_proc_says() {
        let status =
            "Name:\tx\nVmRSS:\t   12345 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n";
        let stat = "1 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 50 6 0 0 20 0 1 0 100 1 1\n";
        let usage = Usage::parse(status, stat).unwrap();
        assert_eq!((usage.rss_kib, usage.switches, usage.ticks), (12345, 9, 56));
    }
}

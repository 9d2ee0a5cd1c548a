//! Measures the idle daemon, on a host with a thousand processes: without servers, and with hundreds of idle servers of
//! living owners, whose wires it looks at from time to time.

use std::{fs, process::Stdio, thread, time::Duration};

use anyhow::{Context as _, Result};

use super::{
    Bench,
    daemon::{AGENT, Actor, Daemon, PATIENCE, SERVER, STRANGER},
    table::{Table, median},
};
use crate::command;

/// Processes on the host when the daemon is measured at rest.
const PROCESSES: usize = 1_000;
/// Idle servers on the host when the daemon is measured with servers, and the agents that own them: each has a wire
/// of two descriptors for each of its servers.
const SERVERS: usize = 600;
const OWNERS: usize = 6;

/// Memory, wake-ups and CPU time at rest, and time to start.
pub fn rest(bench: &Bench<'_>) -> Result<Table> {
    let present = fs::read_dir("/proc").context("cannot read /proc")?.flatten();
    let present = present.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()).count();
    let crowd = many(bench, ["crowd", STRANGER, "sleep"], PROCESSES.saturating_sub(present))?;
    let mut starts = Vec::new();
    for _ in 0..bench.args.rounds {
        let daemon = bench.start()?;
        starts.push(daemon.startup.as_secs_f64() * 1e3);
        daemon.stop()?;
    }
    let daemon = bench.start()?;
    let alone = measure(bench, &daemon)?;
    daemon.stop()?;

    let mut daemon = bench.start()?;
    let server = bench.dir.join(SERVER).display().to_string();
    let owners: Result<Vec<Actor>> =
        (0..OWNERS).map(|_| many(bench, ["owner", AGENT, &server], SERVERS / OWNERS)).collect();
    let owners = owners?;
    for _ in 0..SERVERS {
        let started = daemon.wait_for(PATIENCE, |line| line.is("server_started"));
        started.context("not all servers are known")?;
    }
    let with_servers = measure(bench, &daemon)?;
    daemon.stop()?;
    drop((owners, crowd));

    let title = format!("At rest, with {PROCESSES} processes on the host");
    let mut table = Table::new(&title, &["what", "measured", &format!("with {SERVERS} servers"), "aim"]);
    let mut row = |what: &str, of: fn(&Usage) -> String, aim: &str| {
        table.row([what.to_owned(), of(&alone), of(&with_servers), aim.to_owned()]);
    };
    row("resident memory", Usage::megabytes, "below 15 MB without servers");
    row("wake-ups a minute, all threads", |rest| format!("{:.1}", rest.switches), "");
    row("CPU ms a minute", |rest| format!("{:.0}", rest.cpu_ms), "");
    let start = format!("{:.0} ms", median(&starts));
    table.row(["start until `ready`, median".into(), start, String::new(), "below 200 ms".into()]);
    Ok(table)
}

/// Idle processes, that end with their keeper.
pub fn many(bench: &Bench<'_>, [how, keeper, program]: [&str; 3], count: usize) -> Result<Actor> {
    Actor::start(bench.actor(keeper).args([how, program, &count.to_string()]).stdin(Stdio::piped()))
}

/// What the daemon uses in a minute.
fn measure(bench: &Bench<'_>, daemon: &Daemon) -> Result<Usage> {
    let time = Duration::from_secs(bench.args.seconds);
    command::say("bench", &format!("rest: {time:?}"));
    // What came in while it and the servers started is to be done with, and stored, before the count begins.
    thread::sleep(Duration::from_secs(10));
    let before = Usage::of(daemon.pid())?;
    thread::sleep(time);
    let after = Usage::of(daemon.pid())?;
    let in_a_minute = |before: f64, after: f64| (after - before) * 60.0 / time.as_secs_f64();
    Ok(Usage {
        rss_kib: after.rss_kib,
        switches: in_a_minute(before.switches, after.switches),
        cpu_ms: in_a_minute(before.cpu_ms, after.cpu_ms),
    })
}

/// What a process has used.
#[derive(Debug)]
pub struct Usage {
    rss_kib: f64,
    /// Times one of its threads waited for something: each is a wake-up. Those at which it lost the CPU to others
    /// are not.
    switches: f64,
    /// User and system time.
    pub cpu_ms: f64,
}

impl Usage {
    /// What this process has used so far.
    pub fn of(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}");
        let tasks =
            fs::read_dir(format!("{folder}/task")).with_context(|| format!("cannot read {folder}"))?;
        // A thread may end in between.
        let threads: Vec<String> =
            tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok()).collect();
        let stat = fs::read_to_string(format!("{folder}/stat"))?;
        Self::parse(&threads, &stat).with_context(|| format!("cannot understand {folder}"))
    }

    /// `threads` are the `status` of each thread.
    fn parse(threads: &[String], stat: &str) -> Option<Self> {
        let field = |status: &String, name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse().ok()
        };
        // The name may hold anything; after its closing bracket come the fields from the third on.
        let mut after_name = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || after_name.next()?.parse::<f64>().ok();
        let switches = |thread| field(thread, "voluntary_ctxt_switches");
        Some(Self {
            rss_kib: field(threads.first()?, "VmRSS")?,
            switches: threads.iter().map(switches).sum::<Option<f64>>()?,
            // A clock tick is 10 ms.
            cpu_ms: (ticks()? + ticks()?) * 10.0,
        })
    }

    pub fn megabytes(&self) -> String {
        format!("{:.1} MB", self.rss_kib / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_proc_says() {
        let status =
            "Name:\tx\nVmRSS:\t   12345 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n"
                .to_owned();
        let stat = "1 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 50 6 0 0 20 0 1 0 100 1 1\n";
        let usage = Usage::parse(&[status.clone(), status], stat).unwrap();
        let read = [usage.rss_kib, usage.switches, usage.cpu_ms].map(f64::to_bits);
        assert_eq!(read, [12345.0_f64, 14.0, 560.0].map(f64::to_bits));
        assert_eq!(usage.megabytes(), "12.1 MB");
    }
}

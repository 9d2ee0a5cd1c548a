//! Measures the idle daemon, on a host with a thousand processes: without servers, and with hundreds of idle servers of
//! living owners, whose wires it looks at from time to time.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::{
    Bench,
    daemon::Daemon,
    table::{Table, median},
};
use crate::command;

/// Processes on the host when the daemon is measured at rest.
const PROCESSES: usize = 1_000;
/// Idle servers on the host when the daemon is measured with servers, and the agents that own them: each has a wire
/// of two descriptors for each of its servers.
const SERVERS: usize = 600;
const OWNERS: usize = 6;
/// How long the daemon may take to report the next server.
const PATIENCE: Duration = Duration::from_secs(20);

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
    let alone = Rest::measure(bench, &daemon)?;
    daemon.stop()?;

    let mut daemon = bench.start()?;
    let owners: Vec<Crowd> = (0..OWNERS).map(|_| Crowd::of_servers(bench)).collect::<Result<_>>()?;
    for _ in 0..SERVERS {
        daemon
            .wait_for(PATIENCE, |line| line.kind() == "server_started")
            .context("not all servers are known")?;
    }
    let with_servers = Rest::measure(bench, &daemon)?;
    daemon.stop()?;
    drop(owners);
    drop(crowd);

    let title = format!("At rest, with {PROCESSES} processes on the host");
    let servers = format!("with {SERVERS} servers");
    let mut table = Table::new(&title, &["what", "measured", &servers, "aim"]);
    let row = |what: &str, of: fn(&Rest) -> String, aim: &str| {
        [what.to_owned(), of(&alone), of(&with_servers), aim.to_owned()]
    };
    table.row(row("resident memory", Rest::megabytes, "below 15 MB without servers"));
    table.row(row("wake-ups a minute, all threads", |rest| format!("{:.1}", rest.switches), ""));
    table.row(row("CPU ms a minute", |rest| format!("{:.0}", rest.cpu_ms), ""));
    table.row([
        "start until `ready`, median".into(),
        format!("{:.0} ms", median(&starts)),
        String::new(),
        "below 200 ms".into(),
    ]);
    Ok(table)
}

/// The daemon at rest.
#[derive(Debug)]
struct Rest {
    rss_kib: u64,
    /// Wake-ups a minute.
    switches: f64,
    /// CPU time a minute in milliseconds.
    cpu_ms: f64,
}

impl Rest {
    fn measure(bench: &Bench<'_>, daemon: &Daemon) -> Result<Self> {
        command::say("bench", &format!("rest: {} seconds", bench.args.seconds));
        // What came in while it and the servers started is to be done with, and stored, before the count begins.
        thread::sleep(Duration::from_secs(10));
        let before = Usage::of(daemon.pid())?;
        thread::sleep(Duration::from_secs(bench.args.seconds));
        let after = Usage::of(daemon.pid())?;
        #[expect(clippy::cast_precision_loss, reason = "seconds and counts of a bench are few")]
        let per_minute = |count: u64| count as f64 * 60.0 / bench.args.seconds as f64;
        Ok(Self {
            rss_kib: after.rss_kib,
            switches: per_minute(after.switches.saturating_sub(before.switches)),
            cpu_ms: per_minute((after.ticks - before.ticks) * 10),
        })
    }

    fn megabytes(&self) -> String {
        format!("{}.{} MB", self.rss_kib / 1024, self.rss_kib % 1024 * 10 / 1024)
    }
}

/// What a process has used.
#[derive(Debug)]
pub struct Usage {
    /// Resident memory in KiB.
    pub rss_kib: u64,
    /// Times one of its threads waited for something: each is a wake-up. Those at which it lost the CPU to others
    /// are not.
    switches: u64,
    /// User and system time in clock ticks of 10 ms.
    pub ticks: u64,
}

impl Usage {
    /// What this process has used so far.
    pub fn of(pid: u32) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
        let tasks = format!("/proc/{pid}/task");
        let tasks = fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))?.flatten();
        // A thread may end in between.
        let threads: Vec<String> =
            tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok()).collect();
        Self::parse(&threads, &read(&format!("/proc/{pid}/stat"))?).context("cannot understand /proc")
    }

    /// `threads` are the `status` of each thread.
    fn parse(threads: &[String], stat: &str) -> Option<Self> {
        // The name may hold anything; after its closing bracket come the fields from the third on.
        let mut after_name = stat.rsplit_once(')')?.1.split_whitespace();
        let user: u64 = after_name.nth(11)?.parse().ok()?;
        let system: u64 = after_name.next()?.parse().ok()?;
        let switches = |thread: &String| field(thread, "voluntary_ctxt_switches");
        Some(Self {
            rss_kib: field(threads.first()?, "VmRSS")?,
            switches: threads.iter().map(switches).sum::<Option<u64>>()?,
            ticks: user + system,
        })
    }
}

/// A number in a `status` of /proc.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches([':', '\t', ' ']).split_whitespace().next()?.parse().ok()
}

/// Idle processes; they end when their keeper's stdin closes.
struct Crowd(Child);

impl Crowd {
    fn start(bench: &Bench<'_>) -> Result<Self> {
        let present = fs::read_dir("/proc")
            .context("cannot read /proc")?
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
            .count();
        let missing = PROCESSES.saturating_sub(present);
        Self::gather(Command::new(&bench.actors.stranger).arg("crowd").arg(missing.to_string()))
    }

    /// One owner and its share of the servers.
    fn of_servers(bench: &Bench<'_>) -> Result<Self> {
        let mut owner = Command::new(&bench.actors.agent);
        owner.arg("owner").arg(&bench.actors.server);
        Self::gather(owner.arg((SERVERS / OWNERS).to_string()))
    }

    fn gather(keeper: &mut Command) -> Result<Self> {
        let mut keeper =
            keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start a crowd")?;
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
            "Name:\tx\nVmRSS:\t   12345 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n"
                .to_owned();
        let stat = "1 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 50 6 0 0 20 0 1 0 100 1 1\n";
        let usage = Usage::parse(&[status.clone(), status], stat).unwrap();
        assert_eq!((usage.rss_kib, usage.switches, usage.ticks), (12345, 14, 56));
    }
}

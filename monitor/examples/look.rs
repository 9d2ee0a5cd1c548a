//! What a look at the host costs: `cargo run --release --example look`. Starts sleepers until the host has 1,000
//! processes, ends them, prints a table.

use std::{
    hint::black_box,
    process::{Child, Command, Stdio as Std},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use orphand::{
    host::{Proc, Procfs},
    probe::Probe,
};
use orphand_core::model::{About, BootTime, ProcessId, Subject};

struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn main() -> anyhow::Result<()> {
    let (proc, procfs, probe) = (Proc::system()?, Procfs::system()?, Probe::new()?);
    let mut servers = Vec::new();
    let mut sleepers = Vec::new();
    while proc.pids()?.len() < 1000 {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("600").stdout(Std::null()).stderr(Std::null());
        if servers.len() < 14 {
            servers.push(Started(sleeper.stdin(Std::piped()).spawn()?));
        } else {
            sleepers.push(Started(sleeper.stdin(Std::null()).spawn()?));
        }
    }
    let ids: Vec<ProcessId> = servers
        .iter()
        .chain(&sleepers)
        .map(|started| Ok(proc.process(started.0.id())?.id()))
        .collect::<anyhow::Result<_>>()?;
    let ask: Vec<About> = servers
        .iter()
        .map(|server| {
            let dir = proc.process(server.0.id())?;
            Ok(About::Server(Subject {
                processes: vec![dir.id()],
                stdin: dir.stdio()[0],
                stdout: dir.stdio()[1],
                ..Subject::default()
            }))
        })
        .collect::<anyhow::Result<_>>()?;
    let fds: usize =
        proc.pids()?.into_iter().filter_map(|pid| Some(proc.fd_table(pid).ok()?.fds.len())).sum();
    println!("{} processes, {fds} open files; medians of 21", proc.pids()?.len());

    print("snapshot, stdio of all", || _ = black_box(procfs.snapshot(BootTime(1), |_| true)));
    print("snapshot, stdio of none", || _ = black_box(procfs.snapshot(BootTime(1), |_| false)));
    print(&format!("memory of {}", ids.len()), || {
        _ = black_box(probe.answer(&About::Memory(ids.clone()), &Vec::new));
    });
    print("one process", || {
        _ = ids.first().map(|&id| black_box(probe.answer(&About::Process(id), &Vec::new)));
    });
    if let Some(about) = ask.first() {
        // A probe without a memory: all open files are looked at.
        print("1 server, wire held", || {
            _ = black_box(Probe::new().map(|probe| probe.answer(about, &Vec::new)));
        });
    }
    print("14 servers, wires held", || {
        for about in &ask {
            black_box(probe.answer(about, &Vec::new));
        }
    });
    for server in &mut servers {
        drop(server.0.stdin.take());
    }
    print("14 servers, wires hung up", || {
        for about in &ask {
            black_box(probe.answer(about, &Vec::new));
        }
    });
    let no_wire =
        About::Server(Subject { processes: ids.iter().take(1).copied().collect(), ..Subject::default() });
    print("1 server without a wire", || _ = black_box(probe.answer(&no_wire, &Vec::new)));
    Ok(())
}

/// Time on the processor, which a busy machine does not lengthen, and time on the wall.
fn print(what: &str, mut work: impl FnMut()) {
    let cpu = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let mut times: Vec<_> = (0..21)
        .map(|_| {
            let (start, before) = (Instant::now(), cpu());
            work();
            (cpu().saturating_sub(before), start.elapsed())
        })
        .collect();
    times.sort_unstable();
    let worst = times.iter().map(|(_, wall)| *wall).max().unwrap_or_default();
    let (median, _) = times.get(10).copied().unwrap_or_default();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{what:28} cpu {:9.3} ms   worst on the wall {:9.3} ms",
        milliseconds(median),
        milliseconds(worst)
    );
}

//! Measures what the daemon spends on a user who makes it work, beside what that user spends: silent programs on wires, in
//! a deep folder whose settings files are chains of long links.

use std::{
    collections::VecDeque,
    fs,
    os::unix::{
        fs::{DirBuilderExt as _, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{Bench, table::Table};
use crate::command;

/// The user whose programs they are.
const USER: u32 = 64_009;
/// How deep the folder is, how many links follow each other, and how often each turns on the spot.
const DEPTH: usize = 20;
const LINKS: usize = 38;
const TURNS: usize = 1900;
/// Between two programs, and how long each lives: longer than until its settings are asked for.
const PACE: Duration = Duration::from_millis(50);
const LIFE: Duration = Duration::from_millis(500);

const FILES: [&str; 7] = [
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".roo/mcp.json",
    "opencode.json",
];

/// The shares of a processor that user and daemon take.
pub fn spent(bench: &Bench<'_>) -> Result<Table> {
    let mut table = Table::new(
        "Silent programs in a deep folder of links: shares of a processor",
        &["seconds", "the user", "the daemon and its helpers"],
    );
    let place = Place::new()?;
    let daemon = bench.start()?;
    let half = Duration::from_secs(bench.args.seconds) / 2;
    let begun = Instant::now();
    let mut programs = VecDeque::new();
    for part in 1..=2 {
        command::say("bench", &format!("spent: {} seconds", half.as_secs()));
        let before = (ticks(std::process::id())?, ticks(daemon.pid())?);
        while begun.elapsed() < half * part {
            programs.push_back((Instant::now(), place.start()?));
            while programs.front().is_some_and(|(at, _)| at.elapsed() > LIFE) {
                end(programs.pop_front().map(|(_, program)| program))?;
            }
            thread::sleep(PACE);
        }
        let after = (ticks(std::process::id())?, ticks(daemon.pid())?);
        #[expect(clippy::cast_precision_loss, reason = "ticks of a bench are few")]
        let share = |ticks: u64| format!("{:.1} %", ticks as f64 / half.as_secs_f64());
        let span =
            format!("{} to {}", half.as_secs() * u64::from(part - 1), half.as_secs() * u64::from(part));
        table.row([span, share(after.0 - before.0), share(after.1 - before.1)]);
    }
    for (_, program) in programs {
        end(Some(program))?;
    }
    daemon.stop()?;
    Ok(table)
}

fn end(program: Option<Child>) -> Result<()> {
    // It ends with its input.
    program.map_or(Ok(()), |program| program.wait_with_output().map(drop).context("cannot wait for cat"))
}

/// The folder.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        let place = Self(std::env::temp_dir().join(format!("orphand-bench-{}", std::process::id())));
        fs::DirBuilder::new().mode(0o755).create(&place.0).context("cannot make a folder")?;
        place.fill(&place.0).context("cannot make a folder of links")?;
        Ok(place)
    }

    fn fill(&self, top: &Path) -> std::io::Result<()> {
        let link = |number: usize| format!("{}/{}l{number}", top.display(), "./".repeat(TURNS));
        fs::write(top.join(format!("l{LINKS}")), "{}")?;
        std::os::unix::fs::chown(top.join(format!("l{LINKS}")), Some(USER), None)?;
        for number in 0..LINKS {
            symlink(link(number + 1), top.join(format!("l{number}")))?;
        }
        for depth in 1..=DEPTH {
            let folder = self.at(depth);
            for file in FILES.map(|file| folder.join(file)) {
                fs::create_dir_all(file.parent().unwrap_or(&folder))?;
                symlink(top.join("l0"), file)?;
            }
        }
        Ok(())
    }

    fn at(&self, depth: usize) -> PathBuf {
        self.0.join(["d"; DEPTH].get(..depth).unwrap_or_default().join("/"))
    }

    fn start(&self) -> Result<Child> {
        let mut program = Command::new("cat");
        program.uid(USER).current_dir(self.at(DEPTH)).stdin(Stdio::piped()).stdout(Stdio::piped());
        program.spawn().context("cannot start cat")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a process and those that it has waited for have used: ticks of 10 ms.
fn ticks(pid: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("cannot read /proc")?;
    let (_, fields) = stat.rsplit_once(')').context("cannot understand /proc")?;
    // utime, stime, cutime, cstime
    Ok(fields.split_ascii_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum())
}

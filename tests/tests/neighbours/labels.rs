//! A user whose programs have a name of their own each: what is remembered and shown of them is bounded, and is their own.

use std::{fs, os::unix::fs::chown, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{
    Daemon, Launch,
    neighbours::{HONEST, HOSTILE, Honest, hostile},
    output, scene,
    scrape::{page, sum},
    within,
};

use super::GRACE;

/// Programs at a time.
const PROGRAMS: usize = 300;

/// Starts so many programs, each of which starts a server over pipes; ends them all when it is told to.
const NAMES: &str = r#"
import os, shutil, signal, subprocess, sys
folder, number = sys.argv[1], int(sys.argv[2])
server = folder + "/mcp-server-x"
shutil.copy("/bin/sleep", server)
text = 'pipe(R, W); pipe(A, B); $p = fork(); if (!$p) { open(STDIN, "<&R"); open(STDOUT, ">&B"); '
text += 'exec("%s", "300"); exit } <STDIN>; kill(9, $p); wait;' % server
signal.signal(signal.SIGTERM, lambda *_: None)
all = []
for n in range(number):
    path = "%s/own\x1b[2J-name-%d" % (folder, n)
    with open(path, "w") as file:
        file.write(text)
    all.append(subprocess.Popen(["/usr/bin/perl", path], stdin=subprocess.PIPE))
signal.pause()
for one in all:
    one.stdin.close()
for one in all:
    one.wait()
"#;

/// How many series there are, and the value of the one with these labels.
fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

fn observed(state: &'static str) -> Launch {
    Launch { listen: "127.0.0.1:0", state, ..Launch::default() }
}

/// While they live and after they ended, before and after a restart.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn many_names_take_nobodys_series() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&observed("state"))?;
        let honest = Honest::at_work(s, "honest")?;
        daemon.wait_for("server_started", honest.server())?;
        let before = page(&daemon, "/metrics")?;
        let (servers, few) = (sum(&before, "orphand_servers"), series(&before));
        let folder = s.folder().join("names");
        fs::create_dir(&folder)?;
        chown(&folder, Some(HOSTILE), Some(HOSTILE))?;
        let folder = folder.to_str().context("no text")?;
        let driver = hostile(s, NAMES, &[folder, &PROGRAMS.to_string()])?;
        let all = servers + f64::from(u32::try_from(PROGRAMS)?);
        let text = within("all of them", || {
            page(&daemon, "/metrics").ok().filter(|text| sum(text, "orphand_servers") >= all)
        })?;
        let many = series(&text);
        ensure!(many < few + 300, "{few} series before, {many} with {PROGRAMS} names:\n{text}");
        ensure!(text.contains("orphand_servers{agent=\"other\"}"), "{text}");
        ensure!(!text.contains(|c: char| c.is_control() && c != '\n'), "a control character:\n{text:?}");
        let own = format!("orphand_servers{{agent=\"claude\",uid=\"{HONEST}\",generation=\"1\"}} 1.0");
        ensure!(text.contains(&own), "the honest user has no series:\n{text}");
        driver.signal(Signal::TERM)?;
        driver.wait_gone()?;
        let over = within("their end", || {
            page(&daemon, "/metrics").ok().filter(|text| sum(text, "orphand_servers") <= servers)
        })?;
        daemon.kill()?;
        let daemon = s.daemon_with(&observed("../daemon0/state"))?;
        let next = page(&daemon, "/metrics")?;
        ensure!(series(&next) < few + 150, "{few} series before, {} after a restart:\n{next}", series(&next));
        let took = honest.judged_in_time(&daemon, GRACE)?;
        println!(
            "{PROGRAMS} names: {few} series before, {many} while they lived, {} when they were over, {} after a restart; \
             judged after {took:?}",
            series(&over),
            series(&next)
        );
        Ok(())
    })
}

/// Fills the store: 150,000 keys of one user, each with a run; before them 40 runs of another.
const FILL: &str = "
import sqlite3, sys, json
db = sqlite3.connect(sys.argv[1])
hostile, honest = int(sys.argv[2]), int(sys.argv[3])
now = db.execute('SELECT max(started) FROM daemons').fetchone()[0]
key = lambda name, uid: json.dumps({'agent': {'name': name, 'uid': uid}}, separators=(',', ':'))
run = '''INSERT INTO runs (key, generation, agent, uid, pid, start, alive, boot, started, ended)
    VALUES (?, ?, ?, ?, 7, 7, 0, 1, ?, ?)'''
db.execute('INSERT INTO keys (id, key) VALUES (1000, ?)', [key('claude', honest)])
db.executemany(run, [(1000, n, 'claude', honest, now - 10**9, now - 10**9 + n) for n in range(1, 41)])
for n in range(150000):
    db.execute('INSERT INTO keys (id, key) VALUES (?, ?)', [2000 + n, key('a%d' % n, hostile)])
    db.execute(run, [2000 + n, 1, 'a%d' % n, hostile, now - 10**8 + n, now - 10**8 + n])
db.commit()
";

/// The peak of a daemon's resident memory in kB.
fn peak(daemon: &Daemon) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.id.pid))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    peak.trim().trim_end_matches(" kB").parse().context("no number")
}

/// Runs of a user in the store.
fn runs(store: &Path, uid: u32) -> Result<usize> {
    let count = "import sqlite3, sys; db = sqlite3.connect('file:%s?mode=ro' % sys.argv[1], uri=True); \
                 print(db.execute('SELECT count(*) FROM runs WHERE uid = ?', [sys.argv[2]]).fetchone()[0])";
    let mut python = Command::new("/usr/bin/python3");
    let counted = output(python.args(["-c", count]).arg(store).arg(uid.to_string()))?;
    let text = String::from_utf8(counted.stdout)?;
    text.trim().parse().with_context(|| String::from_utf8_lossy(&counted.stderr).into_owned())
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_store_with_many_names_is_read_within_bounds() -> Result<()> {
    scene(|s| {
        let first = s.daemon_with(&observed("state"))?;
        first.kill()?;
        let store = s.folder().join("daemon0/state/orphand.db");
        let mut fill = Command::new("/usr/bin/python3");
        fill.args(["-c", FILL]).arg(&store).args([HOSTILE.to_string(), HONEST.to_string()]);
        let filled = output(&mut fill)?;
        ensure!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
        let began = std::time::Instant::now();
        let daemon = s.daemon_with(&observed("../daemon0/state"))?;
        let (took, ready) = (began.elapsed(), peak(&daemon)?);
        ensure!(ready < 64 * 1024, "{ready} kB at ready");
        let text = page(&daemon, "/metrics")?;
        ensure!(series(&text) < 1000, "{} series", series(&text));
        let honest = Honest::at_work(s, "honest")?;
        let judged = honest.judged_in_time(&daemon, GRACE)?;
        // The keeper prunes what is the hostile user's.
        let kept = within("the pruning", || runs(&store, HOSTILE).ok().filter(|runs| *runs <= 16_384))?;
        let honests = runs(&store, HONEST)?;
        ensure!(honests == 41, "the honest user has {honests} runs of 41");
        println!(
            "150,000 names in the store: ready after {took:?} with {ready} kB, {} series, judged after {judged:?}, {kept} kept",
            series(&text)
        );
        Ok(())
    })
}

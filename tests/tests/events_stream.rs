//! `orphand events` and "was it you?" beside a real leak: followers, the seam between files and memory, a daemon that
//! is killed and comes back, other users.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Daemon, Launch, Part, Scene, as_user, orphand, scene, told, within};

/// A running `orphand events --follow`. It is killed with the test.
struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    said: Arc<Mutex<String>>,
    unread: Option<ChildStdout>,
}

impl Follower {
    fn start(daemon: &Daemon, more: &[&str]) -> Result<Self> {
        let mut command = daemon.verb(&[&["events", "--follow", "--json"], more].concat())?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (lines, said) = <(Arc<Mutex<Vec<String>>>, Arc<Mutex<String>>)>::default();
        let (unread, errors) = (child.stdout.take(), child.stderr.take().context("no stderr")?);
        let copy = Arc::clone(&said);
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                locked(&copy).push_str(&(line + "\n"));
            }
        });
        Ok(Self { child, lines, said, unread })
    }

    /// From now on it is read.
    fn read(&mut self) -> Result<()> {
        let out = self.unread.take().context("it is read already")?;
        let copy = Arc::clone(&self.lines);
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                locked(&copy).push(line);
            }
        });
        Ok(())
    }

    /// Waits until it has shown exactly these lines.
    fn wait(&self, what: &str, wanted: &[String]) -> Result<()> {
        let have = || locked(&self.lines).clone();
        within(what, || (have().len() >= wanted.len()).then_some(()))
            .with_context(|| format!("it has {} of {}: {:#?}", have().len(), wanted.len(), self.said()))?;
        let have = have();
        for (at, line) in have.iter().enumerate() {
            ensure!(
                wanted.get(at) == Some(line),
                "line {at} of {what} is {line}\ninstead of {:?}",
                wanted.get(at)
            );
        }
        Ok(())
    }

    fn said(&self) -> String {
        locked(&self.said).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(daemon: &Daemon) -> Vec<String> {
    daemon.events().into_iter().map(|event| event.line).collect()
}

/// An agent that leaks a server, which is ended.
fn leak(s: &Scene, daemon: &Daemon, name: &str) -> Result<tests::Identity> {
    let agent = s.start(&Part::agent(name))?;
    let server = agent.start(&Part::server(format!("{name}-server")))?;
    daemon.wait_for("server_started", server.id)?;
    agent.kill()?;
    daemon.reaped(&[server.id])?;
    Ok(server.id)
}

/// Followers that began at different times, one of them not read for long, show what the daemon wrote: every line, once, in
/// order. A daemon that is killed and comes back is waited for, and nothing between is missed.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn followers_miss_nothing() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let (mut early, mut slow) =
            (Follower::start(&daemon, &["--since", "1h"])?, Follower::start(&daemon, &["--since", "1h"])?);
        early.read()?;
        leak(s, &daemon, "first")?;
        let mut late = Follower::start(&daemon, &["--since", "1h"])?;
        late.read()?;
        leak(s, &daemon, "second")?;
        s.barrier(&daemon)?;
        let all = lines(&daemon);
        early.wait("who followed from the start", &all)?;
        late.wait("who came later", &all)?;
        slow.read()?;
        slow.wait("who was slow", &all)?;
        let (code, shown, error) = told(&mut daemon.verb(&["events", "--since", "1h"])?)?;
        ensure!(code == 0 && shown.lines().eq(&all), "{error}{shown}");
        let (code, shown, error) = told(&mut daemon.verb(&["events", "--format", "text"])?)?;
        ensure!(code == 0 && shown.contains("reaped") && !shown.contains('{'), "{error}{shown}");
        let (_, shown, _) = told(&mut daemon.verb(&["events", "--since", "2999-01-01"])?)?;
        ensure!(shown.is_empty(), "{shown}");

        // Killed: nothing was said at its end. The next one has the same files.
        daemon.kill()?;
        let mut all = lines(&daemon);
        within("that the daemon has ended", || early.said().contains("has ended").then_some(()))?;
        let folder = daemon.socket().parent().context("no folder")?.to_owned();
        let launch = Launch { below: Some(s.below().to_owned()), record: Some("again"), ..Launch::default() };
        let again = Daemon::start(&folder, &launch)?;
        leak(s, &again, "third")?;
        within("that it is back", || early.said().contains("there again").then_some(()))?;
        s.barrier(&again)?;
        all.extend(lines(&again));
        for follower in [&early, &late, &slow] {
            follower.wait("who was there before", &all)?;
        }
        // Stopped: the last line is there, too, and without a daemon the files have all of it.
        again.finish()?;
        let own = again.events();
        all.truncate(all.len() - own.iter().filter(|event| all.contains(&event.line)).count());
        all.extend(own.into_iter().map(|event| event.line));
        let mut alone = Command::new(orphand()?);
        let (code, shown, error) = told(alone.args(["events", "--state-dir", "state"]).current_dir(&folder))?;
        ensure!(code == 0 && shown.lines().eq(&all), "{error}{shown}");
        let (code, shown, error) = told(&mut again.verb(&["events", "--follow"])?)?;
        ensure!(code == 1 && shown.is_empty() && error.lines().count() == 1, "{code} {shown} {error}");
        ensure!(error.contains("no orphand answers"), "{error}");
        Ok(())
    })
}

/// Who may not ask the daemon learns nothing; who follows costs others no answer, and there is an end to it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn other_users_and_too_many() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        leak(s, &daemon, "agent")?;
        let mut nobody = as_user(65534, orphand()?);
        nobody.args(["events", "--since", "1h"]);
        let (code, shown, _) = told(nobody.arg("--socket").arg(daemon.socket()))?;
        ensure!(code == 1 && shown.is_empty(), "{code} {shown}");
        let mut followers = Vec::new();
        // Of root.
        for _ in 0..16 {
            let mut follower = Follower::start(&daemon, &["--since", "1h"])?;
            follower.read()?;
            follower.wait("a follower", &lines(&daemon))?;
            followers.push(follower);
        }
        let (code, _, error) = told(&mut daemon.verb(&["events", "--follow"])?)?;
        ensure!(code == 1 && error.contains("as many read events already as may"), "{code} {error}");
        daemon.ask(&["status"])?;
        followers.clear();
        // The daemon notices that they have gone.
        within("room", || {
            let told = told(&mut daemon.verb(&["events"]).ok()?).ok()?;
            (told.0 == 0).then_some(())
        })
    })
}

/// "Was it you?": the signals of a time, with the verdict; "nothing was signalled"; who leaked the most.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn history_says_who_was_signalled_and_why() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let server = leak(s, &daemon, "agent")?;
        let mut clock = String::new();
        let mut date = Command::new("/bin/date").arg("+%H:%M:%S").stdout(Stdio::piped()).spawn()?;
        date.stdout.take().context("no date")?.read_to_string(&mut clock)?;
        date.wait()?;
        let past = daemon.ask(&["history", "--at", clock.trim()])?;
        let signals = past["signals"].as_array().context("no signals")?;
        let ours: Vec<&Value> = signals.iter().filter(|one| one["pid"] == server.pid).collect();
        let first = ours.first().with_context(|| format!("not told: {past}"))?;
        ensure!(
            first["signal"] == "TERM" && first["start"] == server.start && first["asked"] == false,
            "{first}"
        );
        ensure!(first["evidence"][0] == "owner_exited" && first["owner"] == "claude", "{first}");
        let (code, shown, error) = told(&mut daemon.verb(&["history", "--at", clock.trim()])?)?;
        let line =
            shown.lines().find(|line| line.contains("SIGTERM") && line.contains(&server.pid.to_string()));
        ensure!(code == 0 && line.is_some_and(|line| line.contains("owner exited")), "{error}{shown}");
        let (code, shown, error) = told(&mut daemon.verb(&["history", "--since", "3h", "--until", "2h"])?)?;
        ensure!(code == 0 && !shown.contains("was signalled"), "it was not there then: {error}{shown}");
        ensure!(
            shown.starts_with("Not known before ") && shown.contains(": the store begins then."),
            "{shown}"
        );
        let leaks = daemon.ask(&["history", "--leaks"])?;
        ensure!(
            leaks["leaks"][0]["orphans"] == 1 && leaks["leaks"][0]["rss_bytes"].as_u64() > Some(1 << 20),
            "{leaks}"
        );
        let (code, shown, _) = told(&mut daemon.verb(&["history", "--agent", "codex"])?)?;
        ensure!(code == 4 && shown.starts_with("no runs, no MCP servers, no orphans."), "{code} {shown}");
        let mut alone = Command::new(orphand()?);
        let (code, shown, error) = told(alone.args(["history", "--state-dir"]).arg(s.folder().join("none")))?;
        ensure!(code == 1 && shown.is_empty() && error.lines().count() == 1, "{code} {shown} {error}");
        ensure!(error.contains("there is no store at "), "{error}");
        let (code, _, error) = told(&mut daemon.verb(&["history", "--at", "half past two"])?)?;
        ensure!(code == 2 && error.contains("14:03"), "{error}");
        Ok(())
    })
}

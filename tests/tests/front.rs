//! Metrics, the control socket and the verbs that ask it, with the real daemon and a real Prometheus.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{
    Daemon, Launch, Part, Scene, orphand, scene,
    scrape::{page, sum},
    told, within,
};

/// A daemon that is scraped, with more arguments.
fn served(args: &[&'static str]) -> Launch {
    Launch { listen: "127.0.0.1:0", args: args.to_vec(), ..Launch::default() }
}

/// What `status --json` says.
fn status(daemon: &Daemon) -> Result<Value> {
    let (code, text, error) = told(&mut daemon.verb(&["status", "--json"])?)?;
    ensure!(code == 0, "ended with {code}: {error}");
    Ok(serde_json::from_str(&text)?)
}

/// After a real leak status and metrics agree on what there is; the text is what promtool accepts.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_leak_is_told_by_status_and_metrics() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&served(&["--observe"]))?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        let other = s.start(&Part::agent("other"))?;
        let lives = other.start(&Part::server("lives"))?;
        for one in [&server, &lives] {
            daemon.wait_for("server_started", one.id)?;
        }
        let before = page(&daemon, "/metrics")?;
        ensure!(before.contains("\norphand_watching 1"), "{before}");
        let (orphans, all) = (sum(&before, "orphand_orphans"), sum(&before, "orphand_servers"));
        agent.kill()?;
        daemon.wait_for("orphan_detected", server.id)?;
        let after = page(&daemon, "/metrics")?;
        // Whatever else lives on this host.
        ensure!(sum(&after, "orphand_orphans").total_cmp(&(orphans + 1.0)).is_eq(), "{after}");
        ensure!(sum(&after, "orphand_servers").total_cmp(&all).is_eq(), "{after}");
        ensure!(sum(&after, "orphand_orphan_resident_memory_bytes") > 1e6, "{after}");
        ensure!(sum(&after, "orphand_orphans_detected_total") >= 1.0, "{after}");
        // A slow disk is told there, too, and for a moment.
        within("it is well", || (page(&daemon, "/healthz").ok()? == "ok\n").then_some(()))?;
        let status = status(&daemon)?;
        let reports = status["report"]["agents"].as_array().into_iter().flatten();
        let servers = reports.flat_map(|agent| agent["servers"].as_array().into_iter().flatten());
        let ours = servers.into_iter().find(|one| server.id == one["server"]["processes"][0]);
        ensure!(
            ours.is_some_and(
                |ours| ours["state"] == "kept" && ours["server"]["rss_bytes"].as_u64() > Some(1 << 20)
            ),
            "{status}"
        );
        let (code, text, _) = told(&mut daemon.verb(&["status", "--pss"])?)?;
        ensure!(
            code == 0 && text.contains("observes only") && text.contains("Proportional memory"),
            "{text}"
        );
        let (code, text, _) = told(&mut daemon.verb(&["ps", "--tree"])?)?;
        ensure!(code == 0 && text.contains(&server.id.pid.to_string()), "{text}");
        for text in [before, after] {
            let mut promtool = Command::new("promtool")
                .args(["check", "metrics"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            promtool.stdin.take().context("no stdin")?.write_all(text.as_bytes())?;
            let said = promtool.wait_with_output()?;
            let said = (said.status.success(), String::from_utf8_lossy(&said.stderr).into_owned());
            ensure!(said == (true, String::new()), "promtool: {said:?}\n{text}");
        }
        server.kill()
    })
}

/// Scrapers and clients that stall, and too many of them, delay no verdict.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn nobody_who_stalls_delays_a_verdict() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&served(&[]))?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        let mut scrapers = Vec::new();
        for n in 0..40 {
            let mut scraper = TcpStream::connect(daemon.address()?)?;
            // Half of a request, or a whole one whose answer nobody reads.
            let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
            scraper.write_all(&request.as_bytes()[..if n % 2 == 0 { 20 } else { request.len() }])?;
            scrapers.push(scraper);
        }
        let mut clients = Vec::new();
        for n in 0..20 {
            let mut client = UnixStream::connect(daemon.socket())?;
            let request = b"{\"version\":1,\"ask\":\"status\",\"pss\":true}\n";
            // Those beyond the limit are told so and cut off.
            let _ = client.write_all(&request[..if n % 2 == 0 { 20 } else { request.len() }]);
            clients.push(client);
        }
        agent.kill()?;
        let detected = daemon.wait_for("orphan_detected", server.id)?;
        let latency = detected["latency_ms"].as_f64().context("no latency")?;
        // A client that stalls is waited for at least 5 s; a verdict that waited for one would be that late.
        ensure!(latency < 5_000.0, "{latency} ms late: {}", detected.line);
        daemon.reaped(&[server.id])?;
        drop((scrapers, clients));
        // And nobody is kept out for good.
        within("an answer", || status(&daemon).ok()).map(drop)
    })
}

/// A Prometheus from the distribution scrapes it and has the series.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn prometheus_scrapes_it() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&served(&["--observe"]))?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        daemon.wait_for("orphan_detected", server.id)?;
        let folder = s.folder().join("prometheus");
        fs::create_dir(&folder)?;
        let config = format!(
            "global: {{scrape_interval: 200ms}}\nscrape_configs: [{{job_name: orphand, static_configs: [{{targets: ['{}']}}]}}]\n",
            daemon.address()?
        );
        fs::write(folder.join("prometheus.yml"), config)?;
        // A free port, as of now.
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let mut command = s.command("/usr/bin/prometheus")?;
        let log = fs::File::create(folder.join("log"))?;
        command
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        s.spawn(&mut command)?;
        let value = |query: &str| -> Option<f64> {
            let mut stream = TcpStream::connect(&address).ok()?;
            write!(stream, "GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n").ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
            body.pointer("/data/result/0/value/1")?.as_str()?.parse().ok()
        };
        let found = within("the series in Prometheus", || value("sum(orphand_orphans)"));
        let found = found.with_context(|| fs::read_to_string(folder.join("log")).unwrap_or_default())?;
        ensure!(found >= 1.0, "{found} orphans");
        let watching = within("the series in Prometheus", || value("orphand_watching"))?;
        ensure!(watching.total_cmp(&1.0).is_eq(), "not watching");
        within("the build", || value("orphand_build_info"))?;
        within("a counter", || value("sum(orphand_orphans_detected_total)").filter(|n| *n >= 1.0))?;
        server.kill()
    })
}

/// Who is neither root nor of the group may connect, and is refused by its credentials.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn strangers_are_refused() -> Result<()> {
    scene(|s| {
        let launch = Launch { args: vec!["--socket-group", "games"], ..Launch::default() };
        let daemon = s.daemon_with(&launch)?;
        let mode = fs::metadata(daemon.socket())?.permissions().mode() & 0o777;
        ensure!(mode == 0o666, "the mode is {mode:o}");
        let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                      try: s.sendall(b'{\"version\":1,\"ask\":\"status\"}\\n')\n\
                      except BrokenPipeError: pass\nprint(s.makefile().readline())";
        let ask = |user: &[&str]| {
            let mut command = Command::new("/usr/bin/setpriv");
            command.args(user).args(["/usr/bin/python3", "-c", script]).arg(daemon.socket());
            told(&mut command)
        };
        // `games` is user 5 and group 60 on every Debian.
        let (code, text, error) = ask(&["--reuid=5", "--regid=60", "--clear-groups"])?;
        ensure!(code == 0 && text.contains("\"answer\":\"status\""), "ended with {code}: {text}{error}");
        // The past as well, which it cannot read from the file: the same as root reads there.
        let mut verb = Command::new("/usr/bin/setpriv");
        verb.args(["--reuid=5", "--regid=60", "--clear-groups"]).arg(orphand()?);
        let (code, text, error) = told(verb.args(["history", "--json", "--socket"]).arg(daemon.socket()))?;
        ensure!(code == 0, "ended with {code}: {error}");
        let (mut asked, mut read): (Value, Value) = (serde_json::from_str(&text)?, daemon.history()?);
        // It counts back from the moment of each question.
        for one in [&mut asked, &mut read] {
            one["since"] = Value::Null;
            one["source"] = Value::Null;
        }
        ensure!(asked == read && asked["daemons"].get(0).is_some(), "{asked}, but in the file {read}");
        let (code, text, _) = ask(&["--reuid=65534", "--regid=65534", "--clear-groups"])?;
        ensure!(
            code == 0 && text.contains("refused: user 65534 may not use this socket"),
            "ended with {code}: {text}"
        );
        // He sees what /proc shows, and why no more.
        let mut verb = Command::new("/usr/bin/setpriv");
        verb.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(orphand()?);
        let (code, text, error) =
            told(verb.args(["ps", "--below", s.below(), "--socket"]).arg(daemon.socket()))?;
        let says = text.contains("One look through /proc") && text.contains("refused: user 65534");
        ensure!(code == 0 && says, "ended with {code}: {text}{error}");
        // Nor one of whom no file tells, for whom other sources of users are asked.
        let (code, text, error) = ask(&["--reuid=4000000", "--regid=4000000", "--clear-groups"])?;
        let refused = text.contains("refused: user 4000000 may not use this socket");
        ensure!(code == 0 && refused, "ended with {code}: {text}{error}");
        Ok(())
    })
}

/// `reap` shows, refuses to act without a question, and with `--yes` ends what it has shown and nothing else: not what a guard protects.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn reap_asks_and_ends_what_it_has_shown() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&served(&["--observe"]))?;
        let agent = s.start(&Part::agent("agent"))?;
        let orphan = agent.start(&Part::server("orphan"))?;
        let other = s.start(&Part::agent("other"))?;
        let lives = other.start(&Part::server("lives"))?;
        let live_too = other.start(&Part::server("lives-too"))?;
        let guarded = agent.start(&Part::server("guarded").env("ORPHAND_OPT_OUT", "1"))?;
        agent.kill()?;
        daemon.wait_for("orphan_detected", orphan.id)?;
        daemon.wait_for("orphan_spared", guarded.id)?;
        let pid = guarded.id.pid.to_string();
        let (code, text, _) = told(&mut daemon.verb(&["reap", &pid, "--yes"])?)?;
        ensure!(code == 1 && text.contains("stays") && guarded.id.alive(), "ended with {code}: {text}");
        guarded.kill()?;
        let pid = orphan.id.pid.to_string();
        let (code, text, _) = told(&mut daemon.verb(&["reap", &pid, "--dry-run"])?)?;
        ensure!(code == 0 && text.contains("1 server to end"), "ended with {code}: {text}");
        let (code, _, error) = told(&mut daemon.verb(&["reap", &pid])?)?;
        ensure!(
            code == 1 && error.contains("--yes") && error.lines().count() == 1,
            "ended with {code}: {error}"
        );
        ensure!(orphan.id.alive(), "ended without a question");
        let (code, text, error) = told(&mut daemon.verb(&["reap", &pid, "--yes"])?)?;
        ensure!(code == 0 && text.contains("1 server ended"), "ended with {code}: {text}{error}");
        orphan.id.wait_gone()?;
        // One whose owner lives is not meant unless it is asked for.
        let pid = lives.id.pid.to_string();
        let (code, text, error) = told(&mut daemon.verb(&["reap", &pid, "--yes"])?)?;
        ensure!(
            code == 4 && error.contains("--include-active") && lives.id.alive(),
            "ended with {code}: {text}{error}"
        );
        let id = lives.id.to_string();
        let flags = ["reap", &pid, "--include-active", "--yes", "--json"];
        let (code, text, error) = told(&mut daemon.verb(&flags)?)?;
        let said: Value = serde_json::from_str(&text).with_context(|| format!("{text}{error}"))?;
        ensure!(code == 0 && said["ended"][0].as_str() == Some(&*id), "ended with {code}: {text}");
        lives.id.wait_gone()?;
        ensure!(other.id.alive() && live_too.id.alive(), "more was ended than was shown");
        Ok(())
    })
}

/// Without a daemon the evidence in /proc has to do, and it does.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn reap_without_a_daemon() -> Result<()> {
    scene(|s| {
        let agent = s.start(&Part::agent("agent"))?;
        let orphan = agent.start(&Part::server("orphan").below_shell())?;
        let deaf = agent.start(&Part::server("deaf"))?;
        deaf.act("ignore_term")?;
        let other = s.start(&Part::agent("other"))?;
        let lives = other.start(&Part::server("lives"))?;
        agent.kill()?;
        let reap = |args: &[&str]| {
            let mut command = Command::new(orphand()?);
            command
                .args(["reap", "--socket", "none.sock", "--below", s.below()])
                .args(args)
                .current_dir(s.folder());
            told(&mut command)
        };
        for (server, words) in [(&orphan, "1 server ended"), (&deaf, "1 server ended")] {
            let pid = server.id.pid.to_string();
            let (code, text, error) = reap(&[&pid, "--dry-run"])?;
            ensure!(
                code == 0 && text.contains("1 server to end") && server.id.alive(),
                "{code}: {text}{error}"
            );
            let (code, text, error) = reap(&[&pid, "--yes"])?;
            ensure!(code == 0 && text.contains(words), "ended with {code}: {text}{error}");
            ensure!(error.contains("from the evidence in /proc alone"), "{error}");
            server.id.wait_gone()?;
        }
        let (code, text, error) = reap(&[&lives.id.pid.to_string(), "--yes"])?;
        ensure!(
            code == 4 && error.contains("is alive") && lives.id.alive(),
            "ended with {code}: {text}{error}"
        );
        Ok(())
    })
}

/// A port that is taken is one clear line, and taken when it is free; a socket that another daemon has is a refusal.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn doors_that_are_taken() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&served(&[]))?;
        let (address, socket) = (daemon.address()?, daemon.socket());
        let mut command = Command::new(orphand()?);
        let lock = s.folder().join("another-lock");
        command.args(["run", "--format", "json", "--below", s.below(), "--listen", "none"]);
        command.args(["--state-dir", "state", "--lock"]).arg(lock).arg("--socket").arg(&socket);
        let (code, out, error) = told(command.current_dir(s.folder()))?;
        let is_line = code == 1 && out.is_empty() && error.lines().count() == 1;
        ensure!(is_line && error.contains("another daemon answers at"), "ended with {code}: {out}{error}");
        // It still does.
        let mut stream = UnixStream::connect(&socket)?;
        stream.write_all(b"nonsense\n")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        ensure!(line.contains("\"answer\":\"error\"") && line.ends_with('\n'), "{line}");
        let second = s.daemon_with(&Launch { listen: address.clone().leak(), ..Launch::default() })?;
        let taken = format!("cannot serve metrics on {address}: ");
        let log = second.log();
        ensure!(log.lines().any(|line| line.contains(&taken) && line.contains("--listen")), "{log}");
        daemon.kill()?;
        within("the second one has it", || second.address().is_ok_and(|its| its == address).then_some(()))
    })
}

/// Without a daemon `status` says what to do, in one line.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn nobody_to_ask() -> Result<()> {
    scene(|s: &Scene| {
        let mut command = Command::new(orphand()?);
        let (code, out, error) =
            told(command.args(["status", "--socket", "none.sock"]).current_dir(s.folder()))?;
        ensure!(code == 1 && out.is_empty() && error.lines().count() == 1, "ended with {code}: {out}{error}");
        ensure!(error.contains("none.sock") && error.contains("orphand run"), "{error}");
        Ok(())
    })
}

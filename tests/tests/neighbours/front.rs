//! Those who hold doors open without coming in, and web pages that look into this host.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tests::{
    Launch, as_user, in_time,
    neighbours::{HONEST, Honest, hostile},
    orphand, scene,
    scrape::page,
    told, within,
};

use super::GRACE;

/// Half of a request each, more than there are places, again as soon as one is closed.
const HALVES: &str = "
import socket, sys, time
host, port = sys.argv[1].rsplit(':', 1)
def half():
    s = socket.create_connection((host, int(port)))
    s.send(b'GET /metrics HTTP/1.1\\r\\nHost: local')
    s.settimeout(0)
    return s
all = []
open(sys.argv[2], 'w').close()
while True:
    all.append(half())
    if len(all) > 300:
        all.pop(0).close()
    if len(all) > 200:
        time.sleep(0.01)
";

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn half_open_requests_keep_no_scraper_out() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { listen: "127.0.0.1:0", ..Launch::default() })?;
        let honest = Honest::at_work(s, "honest")?;
        let address = daemon.address()?;
        let began = std::env::temp_dir().join(format!("orphand-halves-{}", std::process::id()));
        let crowd = hostile(s, HALVES, &[&address, &began.to_string_lossy()])?;
        within("the crowd", || began.exists().then_some(()))?;
        std::fs::remove_file(&began)?;
        let mut slowest = Duration::ZERO;
        for _ in 0..50 {
            let asked = Instant::now();
            ensure!(page(&daemon, "/metrics")?.contains("\norphand_watching "), "not a page");
            slowest = slowest.max(asked.elapsed());
            // A half is waited for at least 5 s.
            ensure!(slowest < in_time(Duration::from_secs(4))?, "an answer took {slowest:?}");
        }
        let took = honest.judged_in_time(&daemon, GRACE)?;
        ensure!(crowd.alive(), "the crowd has gone: nothing was tried");
        println!("300 half-open requests: answers within {slowest:?}, judged after {took:?}");
        Ok(())
    })
}

/// Requests for servers of others, and connections that say nothing, as fast as they are taken.
const RELEASES: &str = r#"
import socket, sys
path = sys.argv[1]
request = b'{"version":1,"ask":"release","request":{"targets":[{"pid":%s}]}}\n' % sys.argv[2].encode()
silent, begun = [], False
while True:
    for line in (request, b'{"version":1,"ask":"status"}\n', b""):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            s.sendall(line)
        except OSError:
            continue
        silent.append(s)
    while len(silent) > 200:
        silent.pop(0).close()
        if not begun:
            begun = True
            open(sys.argv[3], "w").close()
"#;

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_crowd_at_the_control_socket_keeps_nobody_out() -> Result<()> {
    scene(|s| {
        let config = "abandoned_grace = \"1s\"\n".to_owned();
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let honest = Honest::at_work(s, "honest")?;
        daemon.wait_for("server_started", honest.server())?;
        let began = std::env::temp_dir().join(format!("orphand-releases-{}", std::process::id()));
        let (socket, server) = (daemon.socket(), honest.server().pid.to_string());
        let args = [&socket.to_string_lossy(), server.as_str(), &began.to_string_lossy()];
        let crowd = hostile(s, RELEASES, &args)?;
        within("the crowd", || began.exists().then_some(()))?;
        fs::remove_file(&began)?;
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let asked = Instant::now();
            daemon.ask(&["status"])?;
            slowest = slowest.max(asked.elapsed());
        }
        let asked = Instant::now();
        let (code, _, error) =
            told(as_user(HONEST, orphand()?).args(["release", "1", "--socket"]).arg(&socket))?;
        ensure!(code == 4, "{error}");
        let third = asked.elapsed();
        ensure!(
            slowest.max(third) < in_time(Duration::from_secs(4))?,
            "answers took {slowest:?} and {third:?}"
        );
        let took = honest.judged_in_time(&daemon, GRACE)?;
        ensure!(crowd.alive(), "the crowd has gone: nothing was tried");
        println!(
            "a crowd: root is answered within {slowest:?}, another user within {third:?}, judged after {took:?}"
        );
        Ok(())
    })
}

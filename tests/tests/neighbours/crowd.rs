//! More processes below one user's agent than there is room for.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use anyhow::{Context, Result, ensure};
use tests::{
    Identity, Launch,
    neighbours::{HOSTILE, Honest, hostile},
    scene, within,
};

use super::GRACE;

/// Becomes an agent with 300 children. The last one starts a server, when there is room no more. When the file `go` is there the
/// others end.
const AGENT: &str = r#"
import os, sys
place, programs = sys.argv[1:]
code = '''
import os, subprocess, sys, time
place, programs = sys.argv[1:]
r, w = os.pipe()
for n in range(300):
    if os.fork() == 0:
        os.close(w)
        if n == 299:
            os.close(r)
            late = subprocess.Popen([programs + "/mcp-server-late", "-c", "import sys; sys.stdin.read()"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            with open(place + "/late.new", "w") as f: f.write(str(late.pid))
            os.rename(place + "/late.new", place + "/late")
            late.wait()
        else:
            os.read(r, 1)
        os._exit(0)
while not os.path.exists(place + "/go"): time.sleep(0.01)
os.close(w)
for n in range(300): os.wait()
'''
os.execv(programs + "/claude", ["claude", "-c", code, place, programs])
"#;

/// The share of a user is 128 of 256 processes.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_crowd_leaves_room_for_others() -> Result<()> {
    scene(|s| {
        let args = vec!["--members", "256"];
        let daemon = s.daemon_with(&Launch { args, listen: "127.0.0.1:0", ..Launch::default() })?;
        let honest = Honest::at_work(s, "honest")?;
        let (place, programs) = (s.folder().join("place"), s.folder().join("programs"));
        fs::create_dir(&place)?;
        fs::create_dir(&programs)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777))?;
        for name in ["claude", "mcp-server-late"] {
            symlink("/usr/bin/python3", programs.join(name)).with_context(|| format!("make {name}"))?;
        }
        let [at, from] = [&place, &programs].map(|path| path.to_string_lossy().into_owned());
        hostile(s, AGENT, &[&at, &from])?;
        let told = within("the late server", || fs::read_to_string(place.join("late")).ok())?;
        let late: u32 = told.parse()?;
        let late = Identity::of(late).context("the late server is gone")?;
        let lost =
            daemon.wait("loss", |e| e.kind() == "lost" && e["records"]["member"].as_u64() > Some(0))?;

        let status = daemon.ask(&["status"])?;
        ensure!(
            status["blind"].to_string().contains(&format!("user {HOSTILE}")),
            "not blind after {}: {}",
            lost.line,
            status["blind"]
        );
        ensure!(daemon.log().contains(&format!("user {HOSTILE} has more processes")), "{}", daemon.log());
        // An agent that comes now has room, too.
        let newcomer = Honest::at_work(s, "newcomer")?;
        let took = [honest.judged_in_time(&daemon, GRACE)?, newcomer.judged_in_time(&daemon, GRACE)?];
        ensure!(
            !daemon.events().iter().any(|e| e.is("server_started", late)),
            "there was room for the late server: nothing was tried"
        );

        fs::write(place.join("go"), "")?;
        daemon.wait("repair", |e| e.kind() == "resynced")?;
        daemon.wait_for("server_started", late)?;
        // A slow disk is told there, too, and for a moment.
        within("it is not blind any more", || {
            (daemon.ask(&["status"]).ok()?["blind"] == serde_json::json!([])).then_some(())
        })?;
        println!("a crowd: judged after {took:?}");
        Ok(())
    })
}

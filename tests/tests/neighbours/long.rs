//! Command lines that do not fit into the kernel's record.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use anyhow::{Context, Result, ensure};
use tests::{
    Identity,
    neighbours::{Honest, hostile},
    scene, within,
};

use super::GRACE;

/// Becomes an agent that starts a server by the words of its last arguments, and waits for it.
const AGENT: &str = r#"
import os, sys
place, agent = sys.argv[1:3]
code = '''
import os, subprocess, sys
place, words = sys.argv[1], sys.argv[2:]
server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
with open(place + "/pids.new", "w") as f: f.write("%d %d" % (os.getpid(), server.pid))
os.rename(place + "/pids.new", place + "/pids")
server.wait()
'''
os.execv(agent, ["claude", "-c", code, place] + sys.argv[3:])
"#;

/// What stands behind the first KiB says what it is.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_long_command_line_hides_no_server() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let honest = Honest::at_work(s, "honest")?;
        let jars: Vec<String> = (0..60).map(|n| format!("/srv/app/lib/some-library-{n}-1.2.3.jar")).collect();
        let (jars, token) = (jars.join(":"), format!("TOKEN={}", "x".repeat(3072)));
        let docker = ["run", "-i", "--rm", "-e", &token, "mcp/fetch", "--as", "docker"];
        let java = ["-cp", &jars, "com.example.McpServer", "--as", "java"];
        for (program, arguments) in [("docker", &docker[..]), ("java", &java[..])] {
            let place = s.folder().join(format!("{program}.d"));
            fs::create_dir(&place)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(0o777))?;
            let agent = place.join("claude");
            symlink("/usr/bin/python3", &agent).context("make claude")?;
            let server = s.program(program, false)?;
            let [place, agent] = [place, agent].map(|path| path.to_string_lossy().into_owned());
            hostile(s, AGENT, &[&[place.as_str(), &agent, &server], arguments].concat())?;
            let told = within("a server", || fs::read_to_string(format!("{place}/pids")).ok())?;
            let pids: Vec<u32> = told.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            let [agent, server] = pids[..] else { anyhow::bail!("{told}") };
            let agent = Identity::of(agent).context("the agent is gone")?;
            let server = Identity::of(server).context("the server is gone")?;
            daemon.wait_for("server_started", server)?;
            agent.signal(rustix::process::Signal::KILL)?;
            let detected = daemon.wait_for("orphan_detected", server)?;
            if program == "docker" {
                // A client is told, and its container is not left alone.
                let image = detected.pointer("/server/container/image");
                ensure!(image.is_some_and(|image| image == "mcp/fetch"), "{}", detected.line);
                daemon.wait_for("orphan_spared", server)?;
                server.signal(rustix::process::Signal::KILL)?;
                daemon.wait_for("orphan_exited", server)?;
            } else {
                daemon.reaped(&[server])?;
            }
        }
        honest.judged_in_time(&daemon, GRACE).map(drop)
    })
}

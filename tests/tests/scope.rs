//! A daemon under test keeps to its test (`--below`): a person's own servers are not touched, nor those of other tests.

use std::process::Command;

use anyhow::{Result, ensure};
use tests::{Daemon, Identity, Part, Scene, orphand, output, scene};

/// An agent that is killed, and the server that it leaves.
fn orphan(s: &Scene, daemon: &Daemon) -> Result<Identity> {
    let agent = s.start(&Part::agent("agent"))?;
    let server = agent.start(&Part::server("server"))?;
    daemon.wait_for("server_started", server.id)?;
    agent.kill()?;
    Ok(server.id)
}

/// Of two daemons side by side each ends what was left behind below its own control group, and says nothing of the rest.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn each_daemon_ends_its_own() -> Result<()> {
    scene(|here| {
        scene(|there| {
            let (daemon, other) = (here.daemon()?, there.daemon()?);
            for (s, own, foreign) in [(here, &daemon, &other), (there, &other, &daemon)] {
                let server = orphan(s, own)?;
                own.reaped(&[server])?;
                let told = foreign.events().into_iter().find(|event| event.has(server));
                ensure!(told.is_none(), "told by the other daemon: {told:?}");
            }
            Ok(())
        })
    })
}

/// What a person runs beside the tests, with nobody to judge it: nothing that is under test touches it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_persons_orphan_is_not_touched() -> Result<()> {
    scene(|here| {
        scene(|person| {
            // One was there before the daemon, one comes while it watches.
            let first = person.start(&Part::agent("first"))?;
            let before = first.start(&Part::server("before"))?.id;
            let daemon = here.daemon()?;
            first.kill()?;
            let agent = person.start(&Part::agent("agent"))?;
            let server = agent.start(&Part::server("server"))?.id;
            agent.kill()?;
            here.barrier(&daemon)?;
            here.barrier(&daemon)?;
            for one in [before, server] {
                let told = daemon.events().into_iter().find(|event| event.has(one));
                ensure!(one.alive() && told.is_none(), "{one} was judged: {told:?}");
            }
            let reap = |below: &str| -> Result<String> {
                let mut command = Command::new(orphand()?);
                command.args(["reap", "--socket", "none.sock", "--yes", &server.pid.to_string()]);
                command.args(["--below", below]).current_dir(here.folder());
                let told = output(&mut command)?;
                Ok(String::from_utf8(told.stdout)? + &String::from_utf8(told.stderr)?)
            };
            let text = reap(here.below())?;
            ensure!(text.contains("nothing matched") && server.alive(), "{text}");
            // The twin: below the control group of the person it is ended.
            let text = reap(person.below())?;
            ensure!(text.contains("1 server ended"), "{text}");
            server.wait_gone()
        })
    })
}

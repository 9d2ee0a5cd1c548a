//! The actors themselves, without a daemon: the kernel must say of each situation what the tests of the
//! daemon take for granted.

use anyhow::{Result, ensure};
use tests::{Identity, Part, scene, scene_alone};

/// However it was started, the server is there, and whose child it is follows from how.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn every_way_to_start_a_server() -> Result<()> {
    scene(|s| {
        let agent = s.start(&Part::agent("agent"))?;
        for how in ["fork", "vfork", "posix_spawn", "thread", "job"] {
            let server = agent.start(&Part::server(how).how(how))?;
            ensure!(server.id.parent() == Some(agent.id.pid), "{how}: {:?}", server.id.parent());
            server.kill()?;
        }
        let server = agent.start(&Part::server("clone_parent").how("clone_parent"))?;
        ensure!(server.id.parent() == Some(std::process::id()), "clone_parent: {:?}", server.id.parent());
        let server = agent.start(&Part::server("double_fork").how("double_fork"))?;
        ensure!(server.id.parent() == Some(1), "double_fork: {:?}", server.id.parent());
        let server = agent.start(&Part::server("setsid").setsid())?;
        ensure!(server.act("setsid").is_err(), "it leads a session already");
        let chain = agent.start(&Part::server("chain").below_shell())?;
        let shell = Identity::of(chain.id.parent().unwrap_or(0));
        ensure!(shell.is_some_and(|i| i.parent() == Some(agent.id.pid)), "no shell between");
        Ok(())
    })
}

/// A process keeps its identity through an exec by any of its threads, and lives on without its leader.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn threads() -> Result<()> {
    scene(|s| {
        let agent = s.start(&Part::agent("agent"))?;
        let plain = agent.start(&Part::new("plain", "plain").wire("pipe"))?;
        let server = plain.become_part(&Part::server("server").how("thread"))?;
        server.act("leave_leader")?;
        ensure!(server.act("ignore_term").is_err(), "Python lets only the leader set signal handlers");
        let fork = server.fork("fork")?;
        ensure!(fork.id.parent() == Some(server.id.pid), "it serves no more");
        ensure!(Identity::of(server.id.pid) == Some(server.id), "another identity");
        Ok(())
    })
}

/// Whatever was started is gone when its scene has ended: double forks and new sessions too.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_scene_leaves_nothing_behind() -> Result<()> {
    let mut all = Vec::new();
    scene(|s| {
        let agent = s.start(&Part::agent("agent"))?;
        let lost = agent.start(&Part::server("lost").how("double_fork").setsid())?;
        lost.act("ignore_term")?;
        agent.kill()?;
        all = s.members();
        ensure!(all == [lost.id], "{all:?}");
        Ok(())
    })?;
    ensure!(!all.iter().any(|one| one.alive()), "something was left behind");
    Ok(())
}

/// A number is handed out again when somebody sets the clock of numbers back.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn numbers_can_be_reused() -> Result<()> {
    scene_alone(|s| {
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        server.kill()?;
        let innocent = tests::reuse(s, server.id.pid)?;
        ensure!(innocent.id() == server.id.pid, "another number");
        Ok(())
    })
}

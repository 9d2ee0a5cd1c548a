//! `orphand spare`: a person exempts a program or a user, and takes that back, with real processes.

use std::fs;

use anyhow::{Result, ensure};
use tests::{Part, scene};

/// Debian's nobody.
const NOBODY: u32 = 65534;

/// The program of a process is spared, also in the server that begins later, until that is taken back. Its twin is ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_program_is_spared_until_that_is_taken_back() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let precious =
            agent.start(&Part::new("precious-mcp-server", "precious").wire("pipe").below_shell())?;
        let plain = agent.start(&Part::server("plain"))?;
        daemon.wait_for("server_started", precious.id)?;
        let (code, said) = daemon.says(&["spare", &precious.id.pid.to_string()])?;
        ensure!(code == 0 && said.contains("precious-mcp-server") && said.contains("in effect"), "{said}");
        let file = daemon.socket().with_file_name("conf.d").join("spared.toml");
        let text = fs::read_to_string(&file)?;
        ensure!(text.contains("[[exempt]]") && !text.contains(&precious.id.pid.to_string()), "{text}");
        let again = agent.start(&Part::new("precious-mcp-server", "again").wire("pipe"))?;
        daemon.wait_for("server_started", again.id)?;
        agent.kill()?;
        daemon.reaped(&[plain.id])?;
        for one in [&precious, &again] {
            let spared = daemon.wait_for("orphan_spared", one.id)?;
            ensure!(spared.list("guards") == ["exempt_rule"], "{}", spared.line);
            ensure!(one.id.alive(), "{} was ended", one.alias);
        }
        let (code, refused) = daemon.says(&["spare", "1"])?;
        ensure!(code == 1 && refused.contains("starts everything"), "{refused}");
        let name = said.split("--remove=").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let (_, listed) = daemon.says(&["spare", "--list"])?;
        ensure!(listed.starts_with(&format!("{name}: ")) && listed.lines().count() == 1, "{name}: {listed}");
        let (code, said) = daemon.says(&["spare", "--remove", name])?;
        ensure!(code == 0 && said.starts_with("Not spared any more"), "{said}");
        ensure!(!file.exists(), "an empty file stays");
        for one in [&precious, &again] {
            daemon.wait_for("orphan_reaped", one.id)?;
        }
        Ok(())
    })
}

/// What runs as a user is spared; that of another user is ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_user_is_spared() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let starter = s.start(&Part::new("starter", "starter"))?;
        let agent = starter.start(&Part::agent("agent").uid(NOBODY))?;
        let server = agent.start(&Part::server("server"))?;
        let other = s.start(&Part::agent("other"))?;
        let twin = other.start(&Part::server("twin"))?;
        let (code, said) = daemon.says(&["spare", "--user", "nobody", "--json"])?;
        let spared: serde_json::Value = serde_json::from_str(&said)?;
        ensure!(code == 0 && spared["reloaded"] == true && spared["spared"][0]["user"] == "nobody", "{said}");
        agent.kill()?;
        other.kill()?;
        daemon.reaped(&[twin.id])?;
        let event = daemon.wait_for("orphan_spared", server.id)?;
        ensure!(event.list("guards") == ["exempt_rule"] && server.id.alive(), "{}", event.line);
        Ok(())
    })
}

/// What runs below a slice is spared, in no service of it; that beside it is ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_slice_is_spared() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let (server, twin) = (agent.start(&Part::server("server"))?, agent.start(&Part::server("twin"))?);
        for (one, group) in [(&server, "team.slice/one.scope"), (&twin, "other.slice")] {
            let [_, procs] = s.enter_room(group)?;
            fs::write(procs, one.id.pid.to_string())?;
            daemon.wait_for("server_started", one.id)?;
        }
        let (code, said) = daemon.says(&["spare", "--slice", "team.slice"])?;
        ensure!(code == 0 && said.contains("unit = \"team.slice\""), "{said}");
        agent.kill()?;
        daemon.reaped(&[twin.id])?;
        let event = daemon.wait_for("orphan_spared", server.id)?;
        ensure!(event.list("guards") == ["exempt_rule"] && server.id.alive(), "{}", event.line);
        Ok(())
    })
}

/// Nothing is changed by what means nothing, nor in a configuration with a mistake.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn what_means_nothing_changes_nothing() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let file = daemon.socket().with_file_name("conf.d").join("spared.toml");
        for verb in [
            &["spare", "4194303"][..],
            &["spare", "no-such-server"],
            &["spare", "--user", "no-such-user"],
            &["spare", "--remove", "nothing"],
        ] {
            let (code, said) = daemon.says(verb)?;
            ensure!(
                code == 4 && said.starts_with("orphand: nothing matched: "),
                "{verb:?}: {code:?}: {said}"
            );
        }
        let (code, said) = daemon.says(&["spare", "--unit", "x.scope"])?;
        ensure!(code == 1 && said.contains("is not a service"), "{code:?}: {said}");
        let (code, said) = daemon.says(&["spare", "2"])?;
        ensure!(code == 1 && said.contains("a thread of the kernel"), "{code:?}: {said}");
        ensure!(daemon.says(&["spare"])?.0 == 2, "nothing was named");
        fs::write(daemon.socket().with_file_name("config.toml"), "grace = 7\n")?;
        let (code, said) = daemon.says(&["spare", "--user", "nobody"])?;
        ensure!(code == 1 && said.contains("config.toml:1:"), "{code:?}: {said}");
        ensure!(!file.exists(), "a file was written");
        Ok(())
    })
}

//! `orphand doctor` on a system that runs: a unit that hosts an agent and leaves its servers behind is named, with what mends it.

use anyhow::{Result, ensure};
use tests::{Layout, Manager, Service, USER, orphand, output, scene};

/// Its exit code and what it says. It runs on the host, as root.
fn doctor() -> Result<(Option<i32>, String)> {
    let output = output(std::process::Command::new(orphand()?).arg("doctor"))?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn units_that_leak_are_named_with_what_mends_them() -> Result<()> {
    scene(|s| {
        let system = s.boot("one", Layout::Hybrid)?;
        let managers: [Manager; 2] = [system.manager(), system.user_manager(USER)?];
        let (before, _) = doctor()?;
        for manager in &managers {
            let name = format!("well-{}", manager.user().unwrap_or(0));
            let mut well = Service::untether(&name);
            well.lines = vec!["KillMode=control-group".into()];
            well.install(s, manager)?;
            well.restart(s, manager)?;
        }
        let (code, said) = doctor()?;
        ensure!(code == before, "a unit that leaves nothing is called wrong: {code:?}\n{said}");
        ensure!(!said.contains("[Service]"), "it would mend what is well\n{said}");
        ensure!(said.contains("well-0.service"), "a unit with an agent is not named\n{said}");
        for manager in &managers {
            let leaky = Service::untether(&format!("leaky-{}", manager.user().unwrap_or(0)));
            leaky.install(s, manager)?;
            leaky.restart(s, manager)?;
            let (code, said) = doctor()?;
            ensure!(code == Some(1), "ended with {code:?}\n{said}");
            for word in
                [leaky.unit.as_str(), "KillMode=process", "[Service]", "KillMode=control-group", "systemctl"]
            {
                ensure!(said.contains(word), "it does not say {word}\n{said}");
            }
        }
        Ok(())
    })
}

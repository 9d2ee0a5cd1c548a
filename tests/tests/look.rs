//! `orphand scan` and `orphand tree`: one look through /proc, no daemon, no eBPF.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Identity, Part, orphand, output, scene};

fn look(args: &[&str]) -> Result<(i32, String)> {
    let told = output(Command::new(orphand()?).args(args))?;
    let text = String::from_utf8(told.stdout)?;
    Ok((told.status.code().context("killed")?, text))
}

/// Whether `process` is among those of a server anywhere in `found`.
fn has(found: &Value, process: Identity) -> bool {
    match found {
        Value::Array(all) => all.iter().any(|one| has(one, process)),
        Value::Object(all) => process == *found || all.values().any(|one| has(one, process)),
        _ => false,
    }
}

/// A server without an owner is found with weak evidence, one with an owner is below it; nobody is touched.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_scan_tells_orphans_from_the_owned() -> Result<()> {
    scene(|s| {
        let dead = s.start(&Part::agent("dead"))?;
        let orphan = dead.start(&Part::server("orphan").below_shell())?;
        let agent = s.start(&Part::agent("agent"))?;
        let owned = agent.start(&Part::server("owned"))?;
        dead.kill()?;
        let (code, text) = look(&["scan", "--json", "--exit-code"])?;
        ensure!(code == 3, "ended with {code}: {text}");
        let found: Value = serde_json::from_str(&text)?;
        ensure!(has(&found["unowned"], orphan.id) && !has(&found["unowned"], owned.id), "{text}");
        ensure!(has(&found["agents"], agent.id) && has(&found["agents"], owned.id), "{text}");
        let (code, text) = look(&["tree"])?;
        ensure!(code == 0 && text.contains(&agent.id.pid.to_string()), "ended with {code}: {text}");
        ensure!(text.contains(&owned.id.pid.to_string()), "{text}");
        ensure!(orphan.id.alive() && owned.id.alive(), "a look ended something");
        Ok(())
    })
}

/// However many there are, each is judged; those of the living are not.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_scan_judges_all_of_many() -> Result<()> {
    const MANY: usize = 40;
    scene(|s| {
        let [dead, agent] = [s.start(&Part::agent("dead"))?, s.start(&Part::agent("agent"))?];
        let start = |of: &tests::Actor, name: &str| {
            let one = |n| Ok(of.start(&Part::server(format!("{name}{n}")))?.id);
            (0..MANY).map(one).collect::<Result<Vec<Identity>>>()
        };
        let (orphans, owned) = (start(&dead, "orphan")?, start(&agent, "owned")?);
        dead.kill()?;
        let found: Value = serde_json::from_str(&look(&["scan", "--json"])?.1)?;
        let unowned = found["unowned"].as_array().context("no list")?;
        let judged = |id: Identity| unowned.iter().any(|one| has(one, id) && one["state"] == "orphan");
        for id in orphans {
            ensure!(judged(id), "{id:?} was not judged: {found}");
        }
        ensure!(!owned.into_iter().any(judged), "{found}");
        Ok(())
    })
}

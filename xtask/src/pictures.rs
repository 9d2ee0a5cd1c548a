//! `cargo xtask pictures`: makes the pictures of the pages in `docs/` from a real run: the test that looks at the web page
//! keeps what it saw.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::{command, privilege, setup, workspace};

/// What the test calls its pictures, and what they are called in `docs/pictures`.
const PICTURES: [(&str, &str); 2] =
    [("generations-1280-light.png", "page-light.png"), ("generations-1280-dark.png", "page-dark.png")];
/// A picture has fewer bytes than this.
const BYTES: u64 = 300_000;

/// The verb.
pub fn main() -> Result<()> {
    setup::bpf()?;
    setup::tests()?;
    let seen = workspace::target_dir()?.join("pictures");
    fs::create_dir_all(&seen).with_context(|| format!("cannot make {}", seen.display()))?;
    command::run(workspace::cargo().args(["build", "--workspace", "--exclude", "monitor-ebpf", "--bins"]))?;
    let which = ["test", "-p", "tests", "--test", "page"];
    command::run(workspace::cargo().args(which).arg("--no-run"))?;
    let mut test = privilege::command("env", "watching real processes")?;
    test.arg(format!("ORPHAND_PICTURES={}", seen.display()))
        .arg("cargo")
        .args(which)
        .args(["--", "--ignored"]);
    command::run(test.current_dir(workspace::root()))?;
    let docs = workspace::root().join("docs/pictures");
    fs::create_dir_all(&docs).with_context(|| format!("cannot make {}", docs.display()))?;
    for (name, kept) in PICTURES {
        let bytes =
            fs::copy(seen.join(name), docs.join(kept)).with_context(|| format!("the test made no {name}"))?;
        ensure!(bytes < BYTES, "{kept} has {bytes} bytes, {BYTES} are too many");
        command::say("pictures", &format!("docs/pictures/{kept}: {} kB", bytes / 1000));
    }
    Ok(())
}

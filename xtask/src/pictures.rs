//! `cargo xtask pictures`: makes the pictures of the pages in `docs/` from a real run: the tests that look at the web page
//! and at terminals keep what they saw.

mod terminal;

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::{command, privilege, setup, workspace};

/// The tests that keep what they see: the file of each, and a part of its name.
const TESTS: [(&str, &str); 3] =
    [("page", "a_person_sees"), ("top", "the_view_names"), ("published", "the_example_leaks")];

/// What the tests call their pictures, and what they are called in `docs/pictures`.
const PICTURES: [(&str, &str); 4] = [
    ("generations-1280-light.png", "page-light.png"),
    ("generations-1280-dark.png", "page-dark.png"),
    ("top.ansi", "top.svg"),
    ("leak.ansi", "leak.svg"),
];

/// A picture has fewer bytes than this.
const BYTES: usize = 300_000;

/// The verb.
pub fn main() -> Result<()> {
    setup::bpf()?;
    setup::tests()?;
    let seen = workspace::target_dir()?.join("pictures");
    fs::create_dir_all(&seen).with_context(|| format!("cannot make {}", seen.display()))?;
    command::run(workspace::cargo().args(["build", "--workspace", "--exclude", "monitor-ebpf", "--bins"]))?;
    for (file, name) in TESTS {
        let which = ["test", "-p", "tests", "--test", file];
        command::run(workspace::cargo().args(which).arg("--no-run"))?;
        let mut test = privilege::command("env", "watching real processes")?;
        test.arg(format!("ORPHAND_PICTURES={}", seen.display())).arg("cargo").args(which).args([
            "--",
            "--ignored",
            name,
        ]);
        command::run(test.current_dir(workspace::root()))?;
    }
    let docs = workspace::root().join("docs/pictures");
    fs::create_dir_all(&docs).with_context(|| format!("cannot make {}", docs.display()))?;
    for (name, kept) in PICTURES {
        let told = fs::read(seen.join(name)).with_context(|| format!("no test made {name}"))?;
        let picture = match name {
            "top.ansi" => terminal::still(&String::from_utf8(told)?),
            "leak.ansi" => terminal::played(&String::from_utf8(told)?),
            _ => told,
        };
        ensure!(picture.len() < BYTES, "{kept} has {} bytes, {BYTES} are too many", picture.len());
        fs::write(docs.join(kept), &picture).with_context(|| format!("cannot write {kept}"))?;
        command::say("pictures", &format!("docs/pictures/{kept}: {} kB", picture.len() / 1000));
    }
    Ok(())
}

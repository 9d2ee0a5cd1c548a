//! `cargo xtask dist`: builds the release: a static binary, a Debian package, an archive for other systems, and
//! checksums.
//!
//! `packaging/release.sh` makes one file tree (`target/package`), and the package and the archive contain exactly that
//! tree. With `--debug` the same is made quickly from the debug build, for the tests of the packages. It has
//! another path and another version, so that nobody confuses the two.

mod binary;
mod notices;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{command, files, privilege, setup, workspace};

/// The release of cargo-deb that packs.
const PACKER: &str = "3.8.0";

#[derive(clap::Args)]
pub struct Args {
    /// Of the debug build, dynamically linked, into target/dist-debug: for the tests of the packages, for nobody else.
    #[arg(long)]
    debug: bool,
}

pub fn main(args: &Args) -> Result<()> {
    make(args.debug)?.iter().for_each(|file| println!("{}", file.display()));
    Ok(())
}

/// Makes it all; gives the files.
pub fn make(debug: bool) -> Result<Vec<PathBuf>> {
    let way = setup::bpf()?;
    setup::install(setup::DIST)?;
    if let Some((name, mut building)) = building() {
        command::say("dist", &format!("building {name} (about a minute, once)"));
        command::run(&mut building)?;
    }
    // Here and not where cargo builds, which may be elsewhere: the package's description names files below it.
    let target = workspace::root().join("target");
    let (tree, out) = (target.join("package"), target.join(if debug { "dist-debug" } else { "dist" }));
    let version = format!("{}{}", workspace::VERSION, if debug { "~debug" } else { "" });
    let built = if debug { workspace::build()?.join("orphand") } else { binary::release()? };
    command::say("dist", "collecting what goes with it");
    let doc = tree.join("usr/share/doc/orphand");
    files::empty(&tree).and(files::empty(&out)).and(files::folder(&doc))?;
    files::write(&doc.join("THIRD-PARTY"), notices::notices(&way)?)?;
    let mut release = Command::new(workspace::root().join("packaging/release.sh"));
    release.args([&built, Path::new(&version), &tree, &out, &packer().join("bin/cargo-deb")]);
    command::output(release.args(debug.then_some("--debug")))?;
    files::list(&out)
}

/// `cargo xtask test package`: `tests/stage/package.sh` tests what is made.
pub fn test() -> Result<()> {
    setup::install(setup::PACKAGE)?;
    let root = privilege::prefix("a system of its own")?;
    let made = make(false)?.into_iter().find(|file| file.extension().is_some_and(|e| e == "deb"));
    let target = workspace::root().join("target");
    let mut test = Command::new(workspace::root().join("tests/stage/package.sh"));
    test.arg(made.context("no package was made")?).args([target.join("package/usr/bin/orphand"), target]);
    command::run(test.args(root))
}

/// What builds cargo-deb, once, where that is still to be done: [`make`] does it, too.
///
/// Without its own compression (it then calls `xz`) and without optimisation: built in half a minute instead of two,
/// and packing takes as long.
pub fn building() -> Option<(&'static str, Command)> {
    let mut cargo = workspace::cargo();
    cargo.args(["install", "--quiet", "--locked", "--debug", "cargo-deb", "--version", PACKER]);
    cargo.args(["--no-default-features", "--root"]).arg(packer());
    (!command::is_executable(&packer().join("bin/cargo-deb"))).then_some(("cargo-deb", cargo))
}

fn packer() -> PathBuf {
    workspace::root().join(format!(".toolchain/cargo-deb-{PACKER}"))
}

//! `cargo xtask dist`: builds the release: a static binary, a Debian package, an archive for other systems, and
//! checksums.
//!
//! One file tree (`target/package`) is made first, and the package and the archive contain exactly that tree:
//! [`stage`]. With `--debug` the same is made quickly from the debug build, for the tests of the packages. It has
//! another path and another version, so that nobody confuses the two.

mod archive;
mod binary;
mod deb;
mod notices;
mod stage;
mod test;

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};

pub use self::test::test;
use crate::{command, setup, workspace};

/// The arguments of `dist`.
#[derive(clap::Args)]
pub struct Args {
    /// Of the debug build, dynamically linked, into target/dist-debug: for the tests of the packages, for nobody else.
    #[arg(long)]
    debug: bool,
}

/// What builds the packer, where that is still to be done: [`make`] does it, too.
pub fn building() -> Option<(&'static str, Command)> {
    deb::building().map(|command| ("cargo-deb", command))
}

/// What is being made.
struct Release {
    /// Its version.
    version: String,
    /// When its source was last changed, in seconds since 1970: every file in it has this time.
    epoch: u64,
    /// Where the tree is made.
    tree: PathBuf,
    /// Where the results go.
    out: PathBuf,
}

/// The verb.
pub fn main(args: &Args) -> Result<()> {
    for file in make(args.debug)? {
        println!("{}", file.display());
    }
    Ok(())
}

/// Makes it all; gives the files.
pub fn make(debug: bool) -> Result<Vec<PathBuf>> {
    let way = setup::bpf()?;
    setup::dist()?;
    let tool = deb::tool()?;
    // Here and not where cargo builds, which may be elsewhere: the package's description names files below it.
    let target = workspace::root().join("target");
    let version = workspace::version()?;
    let release = Release {
        version: if debug { format!("{version}~debug") } else { version },
        epoch: archive::epoch()?,
        tree: target.join("package"),
        out: target.join(if debug { "dist-debug" } else { "dist" }),
    };
    let orphand = if debug { binary::debug()? } else { binary::release()? };
    for dir in [&release.tree, &release.out] {
        match fs::remove_dir_all(dir) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("cannot empty {}", dir.display()));
            }
            _ => fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?,
        }
    }
    command::say("dist", "collecting what goes with it");
    stage::collect(&orphand, &release, &way)?;
    let mut files = vec![deb::pack(&tool, &release, debug)?];
    if !debug {
        files.push(archive::tar(&release)?);
        files.push(archive::single(&release)?);
    }
    files.push(archive::sums(&release)?);
    Ok(files)
}

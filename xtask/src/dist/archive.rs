//! The archive for systems other than Debian, the single binary, and the checksums. The same source gives the same
//! bytes.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{Release, binary};
use crate::{command, workspace};

/// `SOURCE_DATE_EPOCH` if it is set (reproducible-builds.org), else when the last commit was made.
pub fn epoch() -> Result<u64> {
    if let Ok(set) = env::var("SOURCE_DATE_EPOCH") {
        return set.parse().context("SOURCE_DATE_EPOCH is not a number of seconds");
    }
    let said = command::output(
        Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(workspace::root()),
    )
    .context("SOURCE_DATE_EPOCH is not set, and git cannot tell when the last commit was made")?;
    said.trim().parse().context("git does not say when the last commit was made")
}

/// `orphand-VERSION-ARCH-linux`, the name of everything that is not a package.
fn name(release: &Release) -> String {
    format!("orphand-{}-{}-linux", release.version, binary::architecture())
}

/// The tree as an archive with one folder at its top.
pub fn tar(release: &Release) -> Result<PathBuf> {
    let name = name(release);
    let archive = release.out.join(format!("{name}.tar.gz"));
    command::output(
        Command::new("tar")
            .args(["--create", "--use-compress-program=gzip -9n", "--file"])
            .arg(&archive)
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
            .arg(format!("--mtime=@{}", release.epoch))
            // S: what symbolic links point to stays.
            .arg(format!("--transform=s,^\\.,{name},S"))
            .arg("-C")
            .args([release.tree.as_path(), Path::new(".")]),
    )?;
    Ok(archive)
}

/// The binary by itself, for `scp`.
pub fn single(release: &Release) -> Result<PathBuf> {
    let file = release.out.join(name(release));
    let from = release.tree.join("usr/bin/orphand");
    fs::copy(&from, &file).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(file)
}

/// `SHA256SUMS` of all files there.
pub fn sums(release: &Release) -> Result<PathBuf> {
    let entries =
        fs::read_dir(&release.out).with_context(|| format!("cannot read {}", release.out.display()))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let sums = command::output(Command::new("sha256sum").args(&names).current_dir(&release.out))?;
    let file = release.out.join("SHA256SUMS");
    fs::write(&file, sums).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

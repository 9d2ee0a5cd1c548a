//! The file tree that every form of the release contains: it defines where each file is on the user's machine.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{Release, binary, notices};
use crate::{command, setup::Bpf, workspace};

/// Files of the repository as they are: from, to, mode.
const FILES: [(&str, &str, u32); 6] = [
    ("packaging/systemd/orphand.service", "usr/lib/systemd/system/orphand.service", 0o644),
    ("packaging/sysusers.d/orphand.conf", "usr/lib/sysusers.d/orphand.conf", 0o644),
    ("packaging/conf.d-README", "etc/orphand/conf.d/README", 0o644),
    ("packaging/deb/lintian-overrides", "usr/share/lintian/overrides/orphand", 0o644),
    ("packaging/deb/copyright", "usr/share/doc/orphand/copyright", 0o644),
    ("README.md", "usr/share/doc/orphand/README.md", 0o644),
];

/// Folders of the repository that are taken whole where they are there: from, to. The files keep their modes.
const FOLDERS: [(&str, &str); 3] = [
    ("docs", "usr/share/doc/orphand/docs"),
    ("examples", "usr/share/doc/orphand/examples"),
    ("packaging/catalog", "usr/lib/systemd/catalog"),
];

/// The folders in which each shell searches for the completions of packages.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/orphand"),
    ("zsh", "usr/share/zsh/vendor-completions/_orphand"),
    ("fish", "usr/share/fish/vendor_completions.d/orphand.fish"),
];

/// Makes the tree.
pub fn collect(built: &Path, release: &Release, way: &Bpf) -> Result<()> {
    let tree = &release.tree;
    let root = workspace::root();
    let orphand = place(tree, "usr/bin/orphand")?;
    binary::strip(built, &orphand)?;
    for (from, to, mode) in FILES {
        let from = root.join(from);
        let text = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        write(&place(tree, to)?, &text, mode)?;
    }
    for (from, to) in FOLDERS {
        copy(&root.join(from), &tree.join(to))?;
    }
    write(&place(tree, "etc/orphand/config.toml")?, default_config(&orphand)?.as_bytes(), 0o644)?;
    for (shell, to) in COMPLETIONS {
        let script = command::output(Command::new(&orphand).args(["completions", shell]))?;
        write(&place(tree, to)?, script.as_bytes(), 0o644)?;
    }
    manual(&orphand, tree)?;
    let doc = |name: &str| place(tree, &format!("usr/share/doc/orphand/{name}"));
    let changes = fs::read(root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    for (name, text) in [
        ("changelog", changes),
        ("changelog.Debian", debian_changelog(release)?.into_bytes()),
        ("THIRD-PARTY", notices::notices(way)?.into_bytes()),
    ] {
        let file = doc(name)?;
        write(&file, &text, 0o644)?;
        compress(&file)?;
    }
    Ok(())
}

/// The manual pages, each in the folder of its section.
fn manual(orphand: &Path, tree: &Path) -> Result<()> {
    let drawer = place(tree, "usr/share/man/all/page")?.with_file_name("");
    command::output(Command::new(orphand).args(["man", "--dir"]).arg(&drawer))?;
    for page in files(&drawer)? {
        let (name, section) = (page.file_name().unwrap_or_default(), page.extension().unwrap_or_default());
        let (name, section) = (name.to_string_lossy(), section.to_string_lossy());
        let to = place(tree, &format!("usr/share/man/man{section}/{name}"))?;
        fs::rename(&page, &to).with_context(|| format!("cannot put {name} into its section"))?;
        compress(&to)?;
    }
    fs::remove_dir(&drawer).with_context(|| format!("cannot remove {}", drawer.display()))
}

/// The commented default configuration, from the binary itself, so that it says what this binary does.
fn default_config(orphand: &Path) -> Result<String> {
    command::output(Command::new(orphand).args(["config", "default"]))
}

/// The changes as Debian writes them: what changed is in the changelog beside it.
fn debian_changelog(release: &Release) -> Result<String> {
    let at = format!("@{}", release.epoch);
    let date = command::output(Command::new("date").args(["-u", "-R", "-d", &at]).env("LC_ALL", "C"))?;
    let version = super::deb::version(release);
    let maintainer = super::deb::MAINTAINER;
    Ok(format!(
        "orphand ({version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {maintainer}  {}\n",
        date.trim()
    ))
}

/// The path of a file of the tree, whose folder is there.
fn place(tree: &Path, file: &str) -> Result<PathBuf> {
    let path = tree.join(file);
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    Ok(path)
}

fn write(path: &Path, text: &[u8], mode: u32) -> Result<()> {
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Replaces a file by a compressed one that does not tell when.
fn compress(file: &Path) -> Result<()> {
    command::output(Command::new("gzip").args(["-9n", "--force"]).arg(file)).map(drop)
}

/// The files directly in a folder.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Copies a folder with all that is in it; none is no failure.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    for file in files(from)? {
        let to = to.join(file.file_name().unwrap_or_default());
        if file.is_dir() {
            copy(&file, &to)?;
            continue;
        }
        let executable = fs::metadata(&file).is_ok_and(|about| about.permissions().mode() & 0o100 != 0);
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = to.to_string_lossy().into_owned();
        write(&place(Path::new("/"), &name)?, &text, if executable { 0o755 } else { 0o644 })?;
    }
    Ok(())
}

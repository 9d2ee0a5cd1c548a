//! A system of its own for packages: real dpkg in a root that only the test sees, without a service manager
//! and without a network.
//!
//! It is an overlay of this machine's root, or of the root that `ORPHAND_TEST_ROOT` names. It ends when the
//! value is dropped. If the test is killed, its first process reads the end of its input, and ends.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{binary::orphand, host::output};

const STAGE: &str = include_str!("../stage/root.sh");

#[derive(Debug)]
pub struct Root {
    keeper: Child,
    folder: TempDir,
}

impl Root {
    /// A root without orphand, whatever the machine has installed.
    pub fn make() -> Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "this test needs root: run `cargo xtask test` as root");
        let folder = tempfile::Builder::new().prefix("orphand-root-").tempdir().context("make a folder")?;
        let script = folder.path().join("root.sh");
        fs::write(&script, STAGE).with_context(|| format!("write {}", script.display()))?;
        let top = folder.path().join("top");
        fs::create_dir(&top).with_context(|| format!("make {}", top.display()))?;
        let base = env::var_os("ORPHAND_TEST_ROOT").unwrap_or_else(|| "/".into());
        let mut keeper = Command::new("/usr/bin/unshare")
            .args(["--mount", "--propagation", "private", "--uts", "--ipc", "--net", "bash"])
            .args([script.as_os_str(), top.as_os_str(), &base])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start unshare")?;
        let mut said = String::new();
        let stdout = keeper.stdout.take().context("no output")?;
        let heard = BufReader::new(stdout).read_line(&mut said);
        let root = Self { keeper, folder };
        heard.context("listen to the root")?;
        ensure!(said == "ready\n", "the root was not made");
        root.ok(&[
            "sh",
            "-c",
            "dpkg --purge orphand; userdel orphand; groupdel orphand; rm -rf /etc/orphand /var/lib/orphand; true",
        ])?;
        Ok(root)
    }

    /// Runs a command inside as root, without a terminal.
    pub fn run(&self, words: &[&str]) -> Result<Output> {
        let pid = self.keeper.id().to_string();
        let mut command = Command::new("/usr/bin/nsenter");
        command.args(["-t", &pid, "-m", "-u", "-i", "-n", "--", "chroot"]).arg(self.merged());
        command.args([
            "env",
            "-i",
            "-C",
            "/",
            "HOME=/root",
            "LC_ALL=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive",
        ]);
        command.arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").args(words);
        output(&mut command)
    }

    /// Runs a command inside that must succeed; returns its output.
    pub fn ok(&self, words: &[&str]) -> Result<String> {
        let output = self.run(words)?;
        let (said, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{words:?}: {}\n{said}{error}", output.status);
        Ok(said.into_owned())
    }

    /// Copies a package into it and runs dpkg --install; `options` are dpkg's.
    pub fn dpkg(&self, package: &Path, options: &[&str]) -> Result<Output> {
        let name = package.file_name().context("no file")?.to_string_lossy().into_owned();
        fs::copy(package, self.path(&format!("/tmp/{name}"))).context("put the package in")?;
        self.run(&[&["dpkg"], options, &["--install", &format!("/tmp/{name}")]].concat())
    }

    pub fn install(&self, package: &Path) -> Result<()> {
        let output = self.dpkg(package, &[])?;
        ensure!(output.status.success(), "dpkg: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The path outside for a path inside.
    pub fn path(&self, inside: &str) -> PathBuf {
        let merged = self.merged();
        PathBuf::from(format!("/proc/{}/root{}{inside}", self.keeper.id(), merged.display()))
    }

    /// The text of a file inside.
    pub fn read(&self, inside: &str) -> Result<String> {
        fs::read_to_string(self.path(inside)).with_context(|| format!("read {inside}"))
    }

    /// Writes a file inside and creates its directory.
    pub fn write(&self, inside: &str, text: &str) -> Result<()> {
        let path = self.path(inside);
        let folder = path.parent().context("no folder")?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("write {inside}"))
    }

    /// Whether a path inside exists, even as a dangling link.
    pub fn has(&self, inside: &str) -> bool {
        self.path(inside).symlink_metadata().is_ok()
    }

    /// The mode, owner and group of a file inside, as `0755 0:0`.
    pub fn rights(&self, inside: &str) -> Result<String> {
        let found = self.path(inside).symlink_metadata().with_context(|| format!("look at {inside}"))?;
        Ok(format!("{:04o} {}:{}", found.permissions().mode() & 0o7777, found.uid(), found.gid()))
    }

    fn merged(&self) -> PathBuf {
        self.folder.path().join("top/merged")
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// The package that `cargo xtask dist` made in the folder `ORPHAND_PACKAGES`, otherwise the one for tests.
pub fn package() -> Result<PathBuf> {
    let set = env::var_os("ORPHAND_PACKAGES").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = set.clone().unwrap_or_else(|| root.join("target/dist-debug"));
    let entries = fs::read_dir(&folder)
        .with_context(|| format!("no package in {}: cargo xtask dist --debug makes it", folder.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let package = files.find(|file| file.extension().is_some_and(|e| e == "deb"));
    let package = package.with_context(|| format!("no package in {}", folder.display()))?;
    let age = |file: &Path| fs::metadata(file).and_then(|about| about.modified());
    let stale = set.is_none() && age(&package)? < age(&orphand()?)?;
    ensure!(!stale, "{} is older than the binary: cargo xtask dist --debug makes it anew", package.display());
    Ok(package)
}

/// The same package with a higher version and with `text` added to its default configuration.
pub fn next_version(package: &Path, folder: &Path, text: &str) -> Result<PathBuf> {
    let tree = folder.join("next");
    let done = |output: Output| {
        ensure!(output.status.success(), "dpkg-deb: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    done(output(Command::new("dpkg-deb").arg("--raw-extract").args([package, &tree]))?)?;
    let edit = |name: &str, how: &dyn Fn(String) -> String| {
        let path = tree.join(name);
        let old = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        fs::write(&path, how(old)).with_context(|| format!("write {}", path.display()))
    };
    edit("DEBIAN/control", &|old| old.replacen("\nVersion: ", "\nVersion: 1:", 1))?;
    edit("etc/orphand/config.toml", &|old| old + text)?;
    let next = folder.join("orphand_next.deb");
    done(output(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zgzip", "-z1", "--build"])
            .args([&tree, &next]),
    )?)?;
    Ok(next)
}

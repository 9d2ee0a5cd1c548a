//! The kernel to boot: Debian's kernel for virtual machines. It is unpacked into the cache of the checkout and never
//! installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{command, setup, workspace};

/// The package that depends on the present one.
const PACKAGE: &str = "linux-image-cloud-amd64";

/// A kernel, unpacked.
#[derive(Debug)]
pub struct Kernel {
    /// What uname(1) will say.
    pub version: String,
    /// The file to boot.
    pub image: PathBuf,
    /// `/lib/modules/VERSION`.
    pub modules: PathBuf,
}

impl Kernel {
    /// The one in the cache, or a fresh one.
    pub fn provide() -> Result<Self> {
        if !cfg!(target_arch = "x86_64") {
            bail!("the test on a machine of its own knows x86_64 only; all other tests run here");
        }
        let cache = workspace::root().join(".cache/vm");
        let dir = cache.join("kernel");
        if let Ok(kernel) = Self::in_dir(&dir) {
            return Ok(kernel);
        }
        fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
        // Put in place by a rename, so that one that is there is whole.
        let fresh = cache.join(format!("kernel.{}", std::process::id()));
        let unpacked = Self::unpack(&fresh).and_then(|()| {
            let _ = fs::remove_dir_all(&dir);
            fs::rename(&fresh, &dir).with_context(|| format!("cannot create {}", dir.display()))
        });
        let _ = fs::remove_dir_all(&fresh);
        unpacked?;
        Self::in_dir(&dir)
    }

    fn unpack(into: &Path) -> Result<()> {
        fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
        let package = setup::download(PACKAGE, into).with_context(|| {
            format!("the guest's kernel is what Debian's {PACKAGE} stands for, and it cannot be had here")
        })?;
        command::output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(into))?;
        fs::remove_file(&package).with_context(|| format!("cannot remove {}", package.display()))
    }

    fn in_dir(dir: &Path) -> Result<Self> {
        let image = only(&dir.join("boot"), "vmlinuz-")?;
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        let version = name.trim_start_matches("vmlinuz-").to_owned();
        let modules = only(&dir.join("lib/modules"), &version)?;
        Ok(Self { version, image, modules })
    }
}

/// The entry of `dir` whose name begins with `prefix`.
fn only(dir: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut found = entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(prefix));
    let entry = found.next().with_context(|| format!("{} has no {prefix}*", dir.display()))?;
    Ok(entry.path())
}

//! A test's alert hook: a shell script that writes files and waits where it is told to.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

use crate::{
    host::{Identity, within},
    scene::Scene,
};

/// The head of every script. `say NAME` stores its input for [`HookScript::told`], `who PID..` prints what
/// [`HookScript::processes`] reads, `gate NAME` waits for [`HookScript::open`].
const HEAD: &str = r#"#!/bin/sh
d='@'
say() { cat > "$d/.$1.$$" && mv "$d/.$1.$$" "$d/$1"; }
who() { for p in "$@"; do l=$(cat "/proc/$p/stat"); echo "$p $(echo "${l##*) }" | cut -d' ' -f20)"; done; }
gate() { read -r _ < "$d/gate-$1"; }
"#;

/// A script with a folder of its own, to which everybody may write.
#[derive(Clone, Debug)]
pub struct HookScript {
    /// The script.
    pub path: PathBuf,
    folder: PathBuf,
}

impl HookScript {
    /// Writes the script.
    pub fn new(scene: &Scene, name: &str, body: &str) -> Result<Self> {
        let folder = scene.folder().join(format!("{name}.d"));
        fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777))?;
        let hook = Self { path: scene.folder().join(name), folder };
        hook.rewrite(body)?;
        Ok(hook)
    }

    /// Replaces the script atomically.
    pub fn rewrite(&self, body: &str) -> Result<()> {
        let head = HEAD.replacen('@', &self.folder.to_string_lossy(), 1);
        self.put(format!("{head}{body}").as_bytes())
    }

    /// Replaces the script by a file with these bytes.
    pub fn put(&self, bytes: &[u8]) -> Result<()> {
        let next = self.path.with_extension("next");
        fs::write(&next, bytes).with_context(|| format!("write {}", next.display()))?;
        fs::set_permissions(&next, fs::Permissions::from_mode(0o755))?;
        fs::rename(&next, &self.path).with_context(|| format!("write {}", self.path.display()))
    }

    /// The path of a file that it writes.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A `[[hook]]` section with this script and these lines.
    pub fn config(&self, lines: &str) -> String {
        format!("[[hook]]\npath = '{}'\n{lines}\n", self.path.display())
    }

    /// Waits for the content that it stored as `name`.
    pub fn told(&self, name: &str) -> Result<Vec<u8>> {
        within(&format!("what the hook says as {name}"), || fs::read(self.folder.join(name)).ok())
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> Result<String> {
        Ok(String::from_utf8(self.told(name)?)?.trim_end().to_owned())
    }

    /// The processes that it stored as `name`.
    pub fn processes(&self, name: &str) -> Result<Vec<Identity>> {
        let text = self.text(name)?;
        let one = |line: &str| {
            let (pid, start) = line.split_once(' ')?;
            Some(Identity { pid: pid.parse().ok()?, start: start.parse().ok()? })
        };
        text.lines().map(|line| one(line).with_context(|| format!("{line:?} is no process"))).collect()
    }

    /// Creates a gate at which the script waits.
    pub fn gate(&self, name: &str) -> Result<()> {
        let path = self.gate_path(name);
        mkfifoat(CWD, &path, Mode::from_raw_mode(0o666)).with_context(|| format!("make {}", path.display()))
    }

    /// Waits until the script is at the gate, and opens it.
    pub fn open(&self, name: &str) -> Result<()> {
        let path = self.gate_path(name);
        let mut waiting = within(&format!("somebody at {}", path.display()), || {
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
            fs::File::options().write(true).custom_flags(flags).open(Path::new(&path)).ok()
        })?;
        waiting.write_all(b"\n").with_context(|| format!("open {}", path.display()))
    }

    fn gate_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("gate-{name}"))
    }
}

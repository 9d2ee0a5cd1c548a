//! The root file system of the guest. It is in memory, made of this machine's own systemd and of what was built
//! here.
//!
//! Programs are copied with the shared libraries they are linked to, so nothing has to be built for the guest.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::kernel::Kernel;
use crate::{command, workspace};

/// This machine's programs that the guest runs: its service manager, how that is told something, how the kernel
/// loads a module, how an agent gives a server a session of its own; the journal, and how tracefs is mounted.
const PROGRAMS: [&str; 7] = [
    "/usr/lib/systemd/systemd",
    "/usr/bin/systemctl",
    "/usr/sbin/modprobe",
    "/usr/bin/setsid",
    "/usr/lib/systemd/systemd-journald",
    "/usr/bin/journalctl",
    "/usr/bin/mount",
];

/// Since version 255 systemd starts services through it.
const EXECUTOR: &str = "/usr/lib/systemd/systemd-executor";

/// The units of systemd that the guest has: those that order the others, the journal and tracefs. None of the
/// machine's services.
const UNITS: [&str; 16] = [
    "basic.target",
    "final.target",
    "local-fs.target",
    "local-fs-pre.target",
    "paths.target",
    "poweroff.target",
    "shutdown.target",
    "slices.target",
    "sockets.target",
    "swap.target",
    "sys-kernel-tracing.mount",
    "sysinit.target",
    "systemd-journald.service",
    "systemd-journald.socket",
    "timers.target",
    "umount.target",
];

/// What the package installs as it is.
const PACKAGED: [(&str, &str); 2] = [
    ("systemd/orphand.service", "usr/lib/systemd/system/orphand.service"),
    ("sysusers.d/orphand.conf", "usr/lib/sysusers.d/orphand.conf"),
];

/// What is built here: its name, and where the guest has it. The names in a scene's `bin` are those that rules know.
const BUILT: [(&str, &str); 4] = [
    ("orphand", "usr/bin/orphand"),
    ("guest", "scene/bin/guest"),
    ("agent", "scene/bin/claude"),
    ("serve", "scene/bin/notes-mcp-server"),
];

/// Small files.
const FILES: [(&str, &str); 9] = [
    ("etc/systemd/system/guest.target", include_str!("units/guest.target")),
    ("etc/systemd/system/guest.service", include_str!("units/guest.service")),
    ("etc/systemd/system/untether.service", include_str!("units/untether.service")),
    // What units say goes to the console, too.
    (
        "etc/systemd/journald.conf",
        "[Journal]\nStorage=volatile\nForwardToKMsg=yes\nReadKMsg=no\nRateLimitBurst=0\n",
    ),
    ("etc/hostname", "guest\n"),
    ("etc/machine-id", "6f7270686e640000000000000000766d\n"),
    ("etc/fstab", ""),
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/group", "root:x:0:\n"),
];

/// Who holds the other end of a socket pair is asked of a module, which the kernel loads when it is asked.
const MODULE: &str = "kernel/net/unix";

/// Builds the image below `dir`, of what was built into `built`; gives its file.
pub fn build(dir: &Path, built: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let root = Root { dir: dir.join("root") };
    if root.dir.exists() {
        fs::remove_dir_all(&root.dir).with_context(|| format!("cannot remove {}", root.dir.display()))?;
    }
    root.lay_out()?;
    let executor = Path::new(EXECUTOR).exists().then_some(EXECUTOR);
    for program in PROGRAMS.into_iter().chain(executor) {
        root.program(Path::new(program), program.trim_start_matches('/'))?;
    }
    for (name, place) in BUILT {
        root.program(&built.join(name), place)?;
    }
    for name in UNITS {
        let unit = format!("usr/lib/systemd/system/{name}");
        root.copy(&Path::new("/").join(&unit), &unit)?;
    }
    for (place, text) in FILES {
        let path = root.place(place)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    for (file, place) in PACKAGED {
        root.copy(&workspace::root().join("packaging").join(file), place)?;
    }
    // As the package does when it is installed.
    command::output(Command::new("systemd-sysusers").arg("--root").arg(&root.dir).arg("orphand.conf"))?;
    root.modules(kernel)?;
    root.archive(&dir.join("root.cpio"))
}

struct Root {
    dir: PathBuf,
}

impl Root {
    fn lay_out(&self) -> Result<()> {
        for folder in [
            "usr/bin",
            "usr/sbin",
            "usr/lib",
            "usr/lib64",
            "proc",
            "sys",
            "dev",
            "run",
            "tmp",
            "var/lib",
            "var/tmp",
        ] {
            let path = self.dir.join(folder);
            fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        }
        let links = [("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];
        for (link, to) in links.into_iter().chain([("init", "usr/lib/systemd/systemd")]) {
            symlink(to, self.dir.join(link)).with_context(|| format!("cannot create the link {link}"))?;
        }
        Ok(())
    }

    /// Where a path of the guest is here; its folder exists.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let path = self.dir.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        Ok(path)
    }

    fn copy(&self, from: &Path, place: &str) -> Result<()> {
        let to = self.place(place)?;
        fs::copy(from, &to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
            .map(drop)
    }

    /// A program and the shared libraries that it is linked to.
    fn program(&self, from: &Path, place: &str) -> Result<()> {
        self.copy(from, place)?;
        let libraries = command::output(Command::new("ldd").arg(from))?;
        for library in paths(&libraries) {
            let place = library.trim_start_matches('/');
            if !self.dir.join(place).exists() {
                self.copy(Path::new(library), place)?;
            }
        }
        Ok(())
    }

    fn modules(&self, kernel: &Kernel) -> Result<()> {
        let place = format!("lib/modules/{}", kernel.version);
        // depmod(8) is to know what needs no module.
        for list in ["modules.builtin", "modules.builtin.modinfo", "modules.order"] {
            self.copy(&kernel.modules.join(list), &format!("{place}/{list}"))?;
        }
        let folder = kernel.modules.join(MODULE);
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for module in entries.flatten() {
            self.copy(&module.path(), &format!("{place}/{MODULE}/{}", module.file_name().to_string_lossy()))?;
        }
        command::output(Command::new("/usr/sbin/depmod").arg("-b").arg(&self.dir).arg(&kernel.version))
            .map(drop)
    }

    /// Packs it as the kernel wants it. Not compressed: it never leaves the machine.
    fn archive(&self, to: &Path) -> Result<PathBuf> {
        let mut names = vec![PathBuf::from(".")];
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            next += 1;
            let path = self.dir.join(&name);
            // A link to a folder is a link.
            if path.is_symlink() || !path.is_dir() {
                continue;
            }
            let entries = fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
            names.extend(entries.flatten().map(|entry| name.join(entry.file_name())));
        }
        let file = fs::File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
        let mut cpio = Command::new("cpio")
            .args(["--quiet", "-o", "-H", "newc", "-R", "+0:+0"])
            .current_dir(&self.dir)
            .stdin(Stdio::piped())
            .stdout(file)
            .spawn()
            .context("cannot start cpio")?;
        if let Some(mut list) = cpio.stdin.take() {
            for name in names {
                writeln!(list, "{}", name.display()).context("cannot tell cpio what to pack")?;
            }
        }
        let status = cpio.wait().context("cannot wait for cpio")?;
        if !status.success() {
            bail!("cpio failed: {status}");
        }
        Ok(to.to_owned())
    }
}

/// The files in what ldd(1) says.
fn paths(ldd: &str) -> impl Iterator<Item = &str> {
    ldd.split_ascii_whitespace().filter(|word| word.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_what_ldd_names() {
        let ldd = "\tlinux-vdso.so.1 (0x00007ff)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                   \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            paths(ldd).collect::<Vec<_>>(),
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]
        );
    }
}

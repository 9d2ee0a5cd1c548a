//! Finds and opens the settings files of agents that a process may be declared in, for [`super::declared`].
//!
//! They are those that agents read themselves: in the working directories of the process and of its parent, in
//! the directories above these, and in the home directory; and those that command lines above it name. They are walked as the process sees them. Invariant: only a
//! regular file of the process's own user, or one of root that everybody may find and read, is opened, so that nobody learns
//! anything about the files of others; a file on a remote mount, or in a file system in which to read is to do
//! something (/proc; who reads `trace_pipe` takes what is in it), is not opened. The search for one process has a bounded
//! cost.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, FileType, FsWord, Mode, OFlags, fstat, fstatfs, openat},
    io::Errno,
};

use super::{open_to_all, settings::Question};
use crate::{
    helper,
    host::{FdDir, ProcessDir},
    os::{own, processor_time::Meter},
};
use orphand_core::recognise::Notation;

/// The most directories that are looked into.
const DIRECTORIES: usize = 32;
/// The processor time after which no further file is looked for: paths of a user's own may lead through thousands of
/// links.
const COST: Duration = Duration::from_millis(20);
/// The time after which no further file is looked for. A file system of the user's own may delay each of them a little
/// less than would be noticed.
const LONGEST: Duration = Duration::from_secs(2);
/// The most bytes of files that one helper reads.
const BYTES: u64 = 32 << 20;

/// File systems of the kernel's own (include/uapi/linux/magic.h): to read some of their files takes what is in them, or
/// does something. proc, sysfs, debugfs, tracefs, cgroup, cgroup2, securityfs, bpf, pstore, configfs, efivarfs, selinux.
const KERNEL: [FsWord; 12] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x0027_e0eb,
    0x6367_7270,
    0x7363_6673,
    0xcafe_4a11,
    0x6165_676c,
    0x6265_6570,
    0xde5e_81e4,
    0xf97c_ff8c,
];

/// Files of a project, and of a home directory.
const OF_PROJECT: &[&str] = &[
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".roo/mcp.json",
    "opencode.json",
];
const OF_HOME: &[&str] = &[
    ".claude.json",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".copilot/mcp-config.json",
    ".codeium/windsurf/mcp_config.json",
    ".config/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    ".config/opencode/opencode.json",
    ".config/zed/settings.json",
];

#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub question: Question,
    /// The files of the question: open, or named (`O_PATH`).
    pub files: Vec<OwnedFd>,
    /// The user and group of them all.
    pub user: Option<(u32, u32)>,
    known: BTreeMap<(u64, u64, Notation), usize>,
    bytes: u64,
}

/// These directories and those above them, the nearest first.
fn places(of: &[Vec<u8>; 2]) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let paths = of.iter().map(|path| Path::new(OsStr::from_bytes(path)));
    let above = paths.filter(|path| path.is_absolute()).flat_map(Path::ancestors);
    above.filter(|path| seen.insert(path.to_path_buf())).take(DIRECTORIES).map(Path::to_path_buf).collect()
}

/// Opens what this descriptor names. A lease on it does not make us wait.
pub(super) fn opened(named: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(CWD, own::path_of(named), flags, Mode::empty())
}

/// Finds files as a process sees them.
pub(super) struct Finder<'a> {
    dir: &'a ProcessDir,
    fds: FdDir,
    user: u32,
    since: Instant,
    meter: Meter,
}

impl<'a> Finder<'a> {
    /// For this process of this user.
    pub(super) fn new(dir: &'a ProcessDir, fds: FdDir, user: u32) -> Self {
        Self { dir, fds, user, since: Instant::now(), meter: Meter::begin() }
    }

    /// Adds the files that may declare the process to those that were gathered; gives their places there.
    pub(super) fn all(
        &self,
        told: &[PathBuf],
        from: &[Vec<u8>; 2],
        home: &[u8],
        gathered: &mut Gathered,
    ) -> Vec<usize> {
        let told: Vec<_> = told.iter().filter_map(|path| self.find(path, Notation::Told, gathered)).collect();
        let places = places(from);
        let projects = places.iter().flat_map(|place| OF_PROJECT.iter().map(|file| place.join(file)));
        let home = Path::new(OsStr::from_bytes(home));
        let homes = OF_HOME.iter().filter(|_| home.is_absolute()).map(|file| home.join(file));
        let usual = projects.chain(homes).filter_map(|path| {
            let toml = path.extension().is_some_and(|extension| extension == "toml");
            self.find(&path, if toml { Notation::Toml } else { Notation::Json }, gathered)
        });
        told.into_iter().chain(usual).collect()
    }

    /// The place of a file among those that were gathered; `None` if there is none, or it may not be read.
    fn find(&self, path: &Path, notation: Notation, gathered: &mut Gathered) -> Option<usize> {
        let _at = self.dir.at().ok()?;
        let path = path.as_os_str().as_bytes();
        if self.since.elapsed() > LONGEST || self.meter.spent() > COST || self.fds.may_hang(path) {
            return None;
        }
        let pinned = self.dir.file_inside(path).ok()?;
        let stat = fstat(&pinned).ok()?;
        let for_all = || stat.st_uid == 0 && open_to_all::leads(self.dir, self.user, path, &stat);
        let is_theirs = stat.st_uid == self.user || for_all();
        let size = u64::try_from(stat.st_size).ok()?;
        let is_read = (1..=notation.longest()).contains(&size);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_theirs || !is_read {
            return None;
        }
        let name = (stat.st_dev, stat.st_ino, notation);
        if let Some(known) = gathered.known.get(&name) {
            return Some(*known);
        }
        let is_kernel = fstatfs(&pinned).map_or(true, |system| KERNEL.contains(&system.f_type));
        if is_kernel || gathered.files.len() >= helper::FILES || gathered.bytes + size > BYTES {
            return None;
        }
        // Whoever closes a file of a user's own file system may wait for ever, and so may whoever starts a program meanwhile:
        // the helper opens it, which is that user. Another helper could not.
        let file = if self.user != 0 && helper::can_be_others() { pinned } else { opened(&pinned).ok()? };
        let at = gathered.files.len();
        gathered.files.push(file);
        gathered.question.files.push(notation);
        gathered.bytes += size;
        gathered.known.insert(name, at);
        Some(at)
    }
}

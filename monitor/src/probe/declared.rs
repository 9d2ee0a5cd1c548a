//! Whether the settings of an agent declare a process as an MCP server: for programs that read their first message
//! before anybody can look at it.
//!
//! The files are those that agents read themselves: in the working directories of the process and of its parent, in
//! the directories above these, and in the home directory. They are walked as the process sees them. Invariant: only a
//! regular file of the process's own user, or one of root that everybody may find and read, is opened, so that nobody learns
//! anything about the files of others; a file on a remote mount, or in a file system in which to read is to do
//! something (/proc; who reads `trace_pipe` takes what is in it), is not opened, and not more than
//! [`Notation::longest`] bytes of one are read. Nothing of them leaves this module but the name of the entry that
//! matches. What was read is kept, see [`super::settings`].

use std::{
    collections::BTreeSet,
    io::Read as _,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use rustix::{
    fs::{CWD, FileType, FsWord, Mode, OFlags, fstat, fstatfs, openat},
    io::Errno,
};

use super::{
    Probe, locked, open_to_all,
    settings::{Name, Settings, Version},
};
use crate::{
    host::{FdDir, ProcessDir},
    os::own,
};
use orphand_core::{
    model::{FirstMessage, ProcessId},
    recognise::{Declarations, Notation},
};

/// The most directories that are looked into.
const DIRECTORIES: usize = 32;
/// The time after which no further file is opened. A file system of the user's own may delay each of them a little less
/// than would be noticed.
const LONGEST: Duration = Duration::from_secs(2);
/// Bytes of the command line that are compared. A longer one is not compared.
const COMMAND_LINE: usize = 32 * 1024;

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

impl Probe {
    /// Whether settings declare this process: [`FirstMessage::Declared`], or [`FirstMessage::Nothing`].
    pub(super) fn declared(&self, process: ProcessId) -> FirstMessage {
        let name = self.name_in_settings(process).unwrap_or_else(|errno| {
            tracing::debug!("cannot look for settings that declare {process}: {errno}");
            None
        });
        name.map_or(FirstMessage::Nothing, |name| FirstMessage::Declared { name })
    }

    fn name_in_settings(&self, process: ProcessId) -> Result<Option<String>, Errno> {
        let Some(dir) = self.proc.identified(process)? else { return Ok(None) };
        let (line, more) = dir.command_line(COMMAND_LINE)?;
        let Ok(line) = std::str::from_utf8(&line) else { return Ok(None) };
        let Some(line) = line.strip_suffix('\0').filter(|_| !more) else { return Ok(None) };
        let argv: Vec<&str> = line.split('\0').collect();
        let parent = self.proc.process(dir.stat().ppid)?;
        let home = dir.environment("HOME")?.unwrap_or_default();
        let (user, fds) = (dir.uid()?, dir.fd_dir()?);
        let reader = Reader { user, fds, dir: &dir, known: &self.settings, since: Instant::now() };
        let places = places(&[dir.working_directory()?, parent.working_directory()?]);
        let projects = places.iter().flat_map(|place| OF_PROJECT.iter().map(|file| place.join(file)));
        let home = Path::new(std::ffi::OsStr::from_bytes(&home));
        let homes = OF_HOME.iter().filter(|_| home.is_absolute()).map(|file| home.join(file));
        let found = projects.chain(homes).find_map(|path| {
            let toml = path.extension().is_some_and(|extension| extension == "toml");
            let notation = if toml { Notation::Toml } else { Notation::Json };
            reader.declarations(&path, notation)?.name_of(&argv).map(str::to_owned)
        });
        Ok(found.filter(|_| dir.still_alive()))
    }
}

/// These directories and those above them, the nearest first.
fn places(of: &[Vec<u8>; 2]) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let paths = of.iter().map(|path| Path::new(std::ffi::OsStr::from_bytes(path)));
    let above = paths.filter(|path| path.is_absolute()).flat_map(Path::ancestors);
    above.filter(|path| seen.insert(path.to_path_buf())).take(DIRECTORIES).map(Path::to_path_buf).collect()
}

/// Reads files as a process sees them.
struct Reader<'a> {
    dir: &'a ProcessDir,
    fds: FdDir,
    user: u32,
    known: &'a Mutex<Settings>,
    since: Instant,
}

impl Reader<'_> {
    /// What a file declares; `None` if there is none, or it may not be read.
    fn declarations(&self, path: &Path, notation: Notation) -> Option<Arc<Declarations>> {
        let _at = self.dir.at().ok()?;
        let path = path.as_os_str().as_bytes();
        if self.since.elapsed() > LONGEST || self.fds.may_hang(path) {
            return None;
        }
        let pinned = self.dir.file_inside(path).ok()?;
        let stat = fstat(&pinned).ok()?;
        let for_all = || {
            stat.st_uid == 0
                && open_to_all::may_read(&stat)
                && open_to_all::leads(self.dir, self.user, path, &stat)
        };
        let is_theirs = stat.st_uid == self.user || for_all();
        let size = u64::try_from(stat.st_size).ok()?;
        let is_read = (1..=notation.longest()).contains(&size);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_theirs || !is_read {
            return None;
        }
        let (name, version) = (Name::of(&stat, notation), Version::of(&stat));
        let known = locked(self.known).get(self.user, name, version);
        known.or_else(|| {
            let is_kernel = fstatfs(&pinned).map_or(true, |system| KERNEL.contains(&system.f_type));
            let may = !is_kernel && locked(self.known).may_read(self.user, size, Instant::now());
            let settled = version.is_settled(SystemTime::now());
            let (text, after) = if may { text(&pinned, notation)? } else { return None };
            let found = Arc::new(Declarations::of(&text, notation));
            if settled && after == version {
                locked(self.known).keep(self.user, name, version, &found, Instant::now());
            }
            Some(found)
        })
    }
}

/// The text of a file, and its version afterwards.
fn text(pinned: &OwnedFd, notation: Notation) -> Option<(Vec<u8>, Version)> {
    // A lease on it does not make us wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = std::fs::File::from(openat(CWD, own::path_of(pinned), flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    (&file).take(notation.longest()).read_to_end(&mut text).ok()?;
    let after = fstat(&file).ok()?;
    Some((text, Version::of(&after)))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::{
            fs::{PermissionsExt as _, symlink},
            process::CommandExt as _,
        },
        process::{Command, Stdio as Std},
    };

    use super::*;
    use crate::probe::tests::Started;

    const ENTRY: &str = r#"{"mcpServers":{"nap":{"command":"sleep","args":["600"]}}}"#;

    /// A process `sleep 600` that works in a folder of a project, below a home.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for folder in ["home/.cursor", "home/.codex", "project/.vscode", "project/src"] {
                fs::create_dir_all(place.0.path().join(folder)).unwrap();
            }
            place
        }

        fn write(&self, file: &str, text: &str) {
            fs::write(self.0.path().join(file), text).unwrap();
        }

        fn says(&self) -> FirstMessage {
            let mut command = Command::new("sleep");
            command.arg("600").current_dir(self.0.path().join("project/src"));
            let command = command.env("HOME", self.0.path().join("home")).stdin(Std::null());
            Probe::new().unwrap().declared(Started::new(command).id())
        }
    }

    fn nap() -> FirstMessage {
        FirstMessage::Declared { name: "nap".to_owned() }
    }

    #[test]
    fn the_files_of_project_and_home_are_found() {
        for (file, text) in [
            ("project/src/.mcp.json", ENTRY),
            ("project/.mcp.json", ENTRY),
            ("project/.vscode/mcp.json", r#"{"servers":{"nap":{"command":"sleep","args":["600"]}}}"#),
            ("home/.claude.json", ENTRY),
            ("home/.cursor/mcp.json", ENTRY),
            ("home/.codex/config.toml", "[mcp_servers.nap]\ncommand = 'sleep'\nargs = ['600']\n"),
        ] {
            let place = Place::new();
            assert_eq!(place.says(), FirstMessage::Nothing);
            place.write(file, text);
            assert_eq!(place.says(), nap(), "{file}");
            place.write(file, &text.replace("600", "60"));
            assert_eq!(place.says(), FirstMessage::Nothing, "other arguments in {file}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_passed_over() {
        let place = Place::new();
        let path = place.0.path().join("project/.mcp.json");
        for target in
            ["/dev/zero", "/proc/self/mem", "/proc/kmsg", "/sys/kernel/uevent_seqnum", "/nowhere", "."]
        {
            symlink(target, &path).unwrap();
            place.write("home/.claude.json", ENTRY);
            assert_eq!(place.says(), nap(), "{target}");
            fs::remove_file(&path).unwrap();
        }
        // Nobody would ever write to it.
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
        assert_eq!(place.says(), nap());
        fs::remove_file(&path).unwrap();
        symlink(place.0.path().join("home/.claude.json"), &path).unwrap();
        fs::rename(place.0.path().join("home/.claude.json"), place.0.path().join("home/.cursor/mcp.json"))
            .unwrap();
        symlink(".cursor/mcp.json", place.0.path().join("home/.claude.json")).unwrap();
        assert_eq!(place.says(), nap(), "a link to a file of the same user");
        let large = format!("{}{}", " ".repeat(usize::try_from(Notation::Json.longest()).unwrap()), ENTRY);
        place.write("home/.cursor/mcp.json", &large);
        assert_eq!(place.says(), FirstMessage::Nothing, "it is too large");
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn the_files_of_another_user_tell_nothing() {
        let place = Place::new();
        place.write("project/.mcp.json", ENTRY);
        assert_eq!(place.says(), nap());
        std::os::unix::fs::chown(place.0.path().join("project/.mcp.json"), Some(4321), None).unwrap();
        assert_eq!(place.says(), FirstMessage::Nothing);
    }

    /// What the settings say of a process of a user without rights, if they are a link to this file.
    fn says_to_a_user(place: &Place, file: &Path) -> FirstMessage {
        for folder in ["", "project", "project/src", "home"] {
            fs::set_permissions(place.0.path().join(folder), Permissions::from_mode(0o755)).unwrap();
        }
        let _ = fs::remove_file(place.0.path().join("project/.mcp.json"));
        symlink(file, place.0.path().join("project/.mcp.json")).unwrap();
        let mut command = Command::new("sleep");
        command.arg("600").uid(64_003).current_dir(place.0.path().join("project/src"));
        let command = command.env("HOME", place.0.path().join("home")).stdin(Std::null());
        Probe::new().unwrap().declared(Started::new(command).id())
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn the_private_files_of_root_tell_nothing() {
        let place = Place::new();
        place.write("secret", ENTRY);
        let secret = place.0.path().join("secret");
        for (mode, told) in [(0o644, nap()), (0o640, FirstMessage::Nothing), (0o600, FirstMessage::Nothing)] {
            fs::set_permissions(&secret, Permissions::from_mode(mode)).unwrap();
            assert_eq!(says_to_a_user(&place, &secret), told, "{mode:o}");
        }
    }

    /// A file that everybody may read is as private as the folder that nobody may enter.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn the_files_below_a_private_folder_of_root_tell_nothing() {
        let place = Place::new();
        fs::create_dir_all(place.0.path().join("private/deep")).unwrap();
        place.write("private/deep/file", ENTRY);
        let secret = place.0.path().join("private/deep/file");
        for (mode, told) in [(0o755, nap()), (0o750, FirstMessage::Nothing), (0o700, FirstMessage::Nothing)] {
            fs::set_permissions(place.0.path().join("private"), Permissions::from_mode(mode)).unwrap();
            assert_eq!(says_to_a_user(&place, &secret), told, "{mode:o}");
        }
    }

    /// A set of trace files of its own.
    struct Traced(PathBuf);

    impl Drop for Traced {
        fn drop(&mut self) {
            fs::remove_dir(&self.0).unwrap();
        }
    }

    /// Root's own process (a build in a hostile checkout) may read everything, the files of the kernel too.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn a_file_whose_reading_takes_what_is_in_it_is_not_read() {
        let mounted = fs::read_to_string("/proc/self/mounts").unwrap();
        let tracing = mounted.lines().find_map(|line| line.strip_prefix("tracefs "));
        let tracing = tracing.and_then(|line| line.split(' ').next()).expect("tracefs is not mounted");
        let traced = Traced(Path::new(tracing).join(format!("instances/orphand-{}", std::process::id())));
        fs::create_dir(&traced.0).unwrap();
        fs::write(traced.0.join("trace_marker"), ENTRY).unwrap();
        let pipe = traced.0.join("trace_pipe");
        let place = Place::new();
        symlink(&pipe, place.0.path().join("project/.mcp.json")).unwrap();
        assert_eq!(place.says(), FirstMessage::Nothing);
        assert_eq!(says_to_a_user(&place, &pipe), FirstMessage::Nothing);
        let left = fs::read_to_string(traced.0.join("trace")).unwrap();
        assert!(left.contains("mcpServers"), "{left}");
    }

    #[test]
    fn one_that_is_gone_is_not_declared() {
        let mut sleeper = Started::sleeper(Std::null());
        let id = sleeper.id();
        sleeper.end();
        assert_eq!(Probe::new().unwrap().declared(id), FirstMessage::Nothing);
    }
}

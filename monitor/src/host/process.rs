//! One directory of /proc: one process, whatever becomes of its number.

use std::os::fd::OwnedFd;

use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
};

use super::{
    FdDir, FdTable, Name, Stat, each_number,
    environ::{self, Sight},
    link, read,
};
use crate::model::{Image, ProcessId, Stdio, redact};

/// The directory of a process in /proc.
#[derive(Debug)]
pub struct ProcessDir {
    pid: u32,
    dir: OwnedFd,
    /// The directory of a living thread, where the leading thread has exited and its own shows nothing.
    thread: Option<OwnedFd>,
    stat: Stat,
}

/// Bytes of `cmdline` read. A longer command line (`MAX_ARG_STRLEN` is 128 KiB for one argument) is cut.
const ARGV_MAX: usize = 128 * 1024;
/// Bytes of `environ` read for one value.
const ENVIRON_MAX: usize = 1024 * 1024;
/// Bytes of `cgroup` read: a dozen paths of `PATH_MAX`.
const CGROUP_MAX: usize = 64 * 1024;
pub(super) const PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl ProcessDir {
    pub(super) fn open(root: &OwnedFd, pid: u32) -> Result<Self, Errno> {
        let dir = openat(root, Name::of(pid).as_str(), PATH, Mode::empty())?;
        let stat = stat(&dir)?;
        let thread = if stat.leader_exited() && stat.threads > 1 { living_thread(&dir) } else { None };
        Ok(Self { pid, dir, thread, stat })
    }

    /// Its identity.
    pub fn id(&self) -> ProcessId {
        ProcessId::new(self.pid, self.stat.start)
    }

    /// `stat` as it was when the directory was opened.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Whether the process is alive still: neither a zombie nor gone.
    pub fn still_alive(&self) -> bool {
        stat(&self.dir).is_ok_and(|stat| stat.is_alive())
    }

    /// Its real user id. Only `status` has it: the directory's owner is the effective one, or root.
    pub fn uid(&self) -> Result<u32, Errno> {
        self.real_id(b"Uid:")
    }

    /// Its real group id.
    pub fn gid(&self) -> Result<u32, Errno> {
        self.real_id(b"Gid:")
    }

    fn real_id(&self, key: &[u8]) -> Result<u32, Errno> {
        // The line is among the first; names are at most 15 bytes long and escaped.
        let (status, _) = read(&self.dir, "status", 4096)?;
        let line = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(key));
        line.and_then(|line| std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok())
            .ok_or(Errno::INVAL)
    }

    /// The number that this user of ours has in the process's user namespace; none if it has none there.
    pub fn uid_inside(&self, uid: u32) -> Result<Option<u32>, Errno> {
        // At most 340 lines (`UID_GID_MAP_MAX_EXTENTS`) of three numbers.
        let (map, _) = read(self.body(), "uid_map", 16 * 1024)?;
        Ok(std::str::from_utf8(&map).ok().and_then(|map| mapped(map, uid)))
    }

    /// Whether it is pid 1 of the PID namespace that it lives in.
    pub fn leads_namespace(&self) -> Result<bool, Errno> {
        Ok(self.pid_inside()? == 1)
    }

    /// Its number in the PID namespace that it lives in.
    pub fn pid_inside(&self) -> Result<u32, Errno> {
        let (status, _) = read(&self.dir, "status", 4096)?;
        let line = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"));
        let inner = line.and_then(|line| line.split(u8::is_ascii_whitespace).next_back());
        inner.and_then(|pid| std::str::from_utf8(pid).ok()?.parse().ok()).ok_or(Errno::INVAL)
    }

    /// What it runs: `exe` (empty where it cannot be read) and `cmdline`, lossy and redacted.
    pub fn image(&self) -> Image {
        let (cmdline, argv_truncated) = self.command_line(ARGV_MAX).unwrap_or_default();
        Image { exe: self.exe(), argv: redact::argv(split_argv(&cmdline)), argv_truncated }
    }

    /// At most so many bytes of its command line as it stands in its memory now, and whether there is more.
    pub fn command_line(&self, most: usize) -> Result<(Vec<u8>, bool), Errno> {
        read(self.body(), "cmdline", most)
    }

    /// The file that it runs, as [`Image::exe`] has it.
    pub fn exe(&self) -> String {
        let exe = link(self.body(), "exe").unwrap_or_default();
        // A program that was replaced on disk (an upgrade) is the same program.
        String::from_utf8_lossy(exe.strip_suffix(b" (deleted)").unwrap_or(&exe)).into_owned()
    }

    /// What its standard streams are.
    pub fn stdio(&self) -> [Stdio; 3] {
        self.fd_dir().map_or([Stdio::Closed; 3], |fds| [0, 1, 2].map(|number| fds.stdio(number)))
    }

    /// Its directory `fd`.
    pub fn fd_dir(&self) -> Result<FdDir, Errno> {
        Ok(FdDir::new(openat(self.body(), "fd", PATH, Mode::empty())?))
    }

    /// Its open descriptors.
    pub fn fd_table(&self) -> Result<FdTable, Errno> {
        // The links of a process that has just ended answer EACCES too (`proc_fd_access_allowed()`, fs/proc/base.c).
        FdTable::read(self.body(), "fd").map_err(|errno| match errno {
            Errno::ACCESS | Errno::PERM if !self.still_alive() => Errno::SRCH,
            errno => errno,
        })
    }

    /// The process that it is a thread of: the number of a thread names a directory, too.
    pub fn leader(&self) -> Result<u32, Errno> {
        let (status, _) = read(&self.dir, "status", 4096)?;
        let line = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Tgid:"));
        line.and_then(|line| std::str::from_utf8(line).ok()?.trim().parse().ok()).ok_or(Errno::INVAL)
    }

    /// Its threads, by number.
    pub fn threads(&self) -> Result<Vec<u32>, Errno> {
        let tasks = openat(&self.dir, "task", super::DIRECTORY, Mode::empty())?;
        let mut tids = Vec::new();
        each_number(&tasks, |tid| tids.push(tid))?;
        Ok(tids)
    }

    /// A small file of one of its threads (`status`, `schedstat`); nothing if the thread has ended.
    pub fn thread_file(&self, tid: u32, file: &str) -> Result<Option<Vec<u8>>, Errno> {
        match read(&self.dir, &format!("task/{tid}/{file}"), 4096) {
            Ok((bytes, _)) => Ok(Some(bytes)),
            Err(Errno::NOENT | Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The open descriptors of each of its threads. Nearly always one table that all share; a thread may have one of its own.
    pub fn thread_tables(&self) -> Result<Vec<FdTable>, Errno> {
        let mut tables = Vec::new();
        for tid in self.threads()? {
            match FdTable::read(&self.dir, &format!("task/{tid}/fd")) {
                Ok(table) => tables.push(table),
                Err(Errno::NOENT | Errno::SRCH) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(tables)
    }

    /// Bytes that it, and all its threads that have ended, has read and written: `rchar` and `wchar` of `io`.
    pub fn bytes_moved(&self) -> Result<u64, Errno> {
        let (io, _) = read(&self.dir, "io", 4096)?;
        let field = |key: &[u8]| -> Option<u64> {
            let line = io.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(key))?;
            std::str::from_utf8(line).ok()?.trim().parse().ok()
        };
        let (read, written) = field(b"rchar:").zip(field(b"wchar:")).ok_or(Errno::INVAL)?;
        Ok(read.wrapping_add(written))
    }

    /// Whether its environment, as it was at its exec, has this `NAME=VALUE`, wherever it stands. One that cannot be read to
    /// its end counts as one that has it; a process that has ended has none.
    pub fn has_environment(&self, entry: &[u8]) -> bool {
        match environ::find(self.body(), entry) {
            Sight::Found => true,
            Sight::Absent => false,
            Sight::Unseen => self.still_alive(),
        }
    }

    /// The value of this variable in its environment as it was at its exec; the first one, as getenv(3) has it.
    pub fn environment(&self, name: &str) -> Result<Option<Vec<u8>>, Errno> {
        let (environ, _) = read(self.body(), "environ", ENVIRON_MAX)?;
        let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
        Ok(environ.split(|&b| b == 0).find_map(value))
    }

    /// Its control groups, `/proc/PID/cgroup`.
    pub fn cgroup(&self) -> Result<String, Errno> {
        let (text, _) = read(self.body(), "cgroup", CGROUP_MAX)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// A directory as the process sees it, by its path from the process' own root, which no link on the way leads out of.
    pub fn directory_inside(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let root = openat(self.body(), "root", PATH, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&root, path, PATH, Mode::empty(), resolve)
    }

    /// A file as the process sees it, in the same way; only to name it ([`OFlags::PATH`]).
    pub fn file_inside(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let root = openat(self.body(), "root", PATH, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// Resident set size in pages, `statm` field 2.
    pub fn resident_pages(&self) -> Result<u64, Errno> {
        let (statm, _) = read(self.body(), "statm", 256)?;
        let field =
            std::str::from_utf8(&statm).ok().and_then(|s| s.split_ascii_whitespace().nth(1)?.parse().ok());
        field.ok_or(Errno::INVAL)
    }

    /// Proportional set size in bytes, `smaps_rollup`. Costs 15 us and 10 us for each resident megabyte.
    pub fn proportional_bytes(&self) -> Result<u64, Errno> {
        let (rollup, _) = read(self.body(), "smaps_rollup", 8192)?;
        let line = rollup.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Pss:"));
        let kib: Option<u64> = line
            .and_then(|line| std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok());
        Ok(kib.ok_or(Errno::INVAL)?.saturating_mul(1024))
    }

    /// Which network namespace it is in: the text of the link.
    pub fn network(&self) -> Result<Vec<u8>, Errno> {
        link(self.body(), "ns/net")
    }

    /// A file of its directory, opened for reading (`ns/net`, `net/tcp`).
    pub fn open_file(&self, path: &str) -> Result<OwnedFd, Errno> {
        openat(self.body(), path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The directory that shows memory, files and namespaces.
    pub(super) fn body(&self) -> &OwnedFd {
        self.thread.as_ref().unwrap_or(&self.dir)
    }
}

fn stat(dir: impl AsFd) -> Result<Stat, Errno> {
    let (line, _) = read(dir, "stat", 4096)?;
    Stat::parse(&line).ok_or(Errno::INVAL)
}

fn living_thread(dir: &OwnedFd) -> Option<OwnedFd> {
    let tasks = openat(dir, "task", super::DIRECTORY, Mode::empty()).ok()?;
    let mut tids = Vec::new();
    each_number(&tasks, |tid| tids.push(tid)).ok()?;
    tids.into_iter()
        .filter_map(|tid| openat(&tasks, Name::of(tid).as_str(), PATH, Mode::empty()).ok())
        .find(|thread| stat(thread).is_ok_and(|stat| !stat.leader_exited()))
}

/// What `uid_map` makes of a number: lines of the first one inside, the first one outside, and how many.
fn mapped(map: &str, uid: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (inside, outside, count) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
        let at = uid.checked_sub(outside).filter(|at| *at < count)?;
        inside.checked_add(at)
    })
}

/// The arguments in `/proc/PID/cmdline`: each ends with a NUL. A program that wrote a title over them leaves
/// one string, often with NULs behind it.
fn split_argv(cmdline: &[u8]) -> Vec<String> {
    let end = cmdline.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    match cmdline.get(..end) {
        None | Some([]) => Vec::new(),
        Some(args) => args.split(|&b| b == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Proc;

    #[test]
    fn arguments_end_with_nul_and_titles_leave_nuls_behind() {
        assert_eq!(split_argv(b"node\0server.js\0"), ["node", "server.js"]);
        assert_eq!(split_argv(b"npm exec @scope/x --flag"), ["npm exec @scope/x --flag"]);
        assert_eq!(split_argv(b"title of its own\0\0\0\0"), ["title of its own"]);
        assert_eq!(split_argv(b"a\0\0b\0"), ["a", "", "b"]);
        assert_eq!(split_argv(b"\xff\0"), ["\u{fffd}"]);
        assert!(split_argv(b"").is_empty());
        assert!(split_argv(b"\0\0").is_empty());
    }

    #[test]
    fn users_have_numbers_inside() {
        let map = "         0     100000      65536\n     65536       1000          1\n";
        assert_eq!(
            [100_000, 165_535, 165_536, 1000, 0].map(|uid| mapped(map, uid)),
            [Some(0), Some(65_535), None, Some(65_536), None]
        );
        assert_eq!(mapped("0 0 4294967295\n", 54_321), Some(54_321));
        assert_eq!(mapped("", 0), None);
        assert_eq!(mapped("x y z", 0), None);
    }

    #[test]
    fn our_own_directory() {
        let dir = Proc::system().unwrap().process(std::process::id()).unwrap();
        assert!(dir.still_alive());
        assert_eq!(dir.uid().unwrap(), rustix::process::getuid().as_raw());
        assert_eq!(dir.gid().unwrap(), rustix::process::getgid().as_raw());
        assert!(dir.uid_inside(dir.uid().unwrap()).unwrap().is_some());
        assert!(dir.file_inside(b"/proc/../proc/version").is_ok());
        assert_eq!(dir.file_inside(b"nowhere/at/all").unwrap_err(), Errno::NOENT);
        assert_eq!(dir.image().argv, std::env::args().collect::<Vec<_>>());
        assert_eq!(dir.image().exe, std::env::current_exe().unwrap().to_string_lossy());
        assert!(dir.resident_pages().unwrap() > 100);
        assert!(!dir.has_environment(b"ORPHAND_OPT_OUT=1"));
    }

    #[test]
    fn a_directory_never_answers_for_another_process() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let dir = Proc::system().unwrap().process(child.id()).unwrap();
        assert!(dir.still_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        // Gone, whoever gets the number.
        assert!(!dir.still_alive());
        assert_eq!(dir.uid(), Err(Errno::SRCH));
        assert_eq!(dir.image(), Image::default());
    }

    #[test]
    fn a_process_whose_leader_exited_is_read_through_a_living_thread() {
        // The main thread ends by itself; the process lives on in the other one.
        let script = "import ctypes, threading, sys\n\
                      threading.Thread(target=sys.stdin.read).start()\n\
                      print(flush=True)\n\
                      ctypes.CDLL(None).syscall(60, 0)";
        let mut child = std::process::Command::new("python3")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        let proc = Proc::system().unwrap();
        let dir = loop {
            let dir = proc.process(child.id()).unwrap();
            if dir.stat().leader_exited() {
                break dir;
            }
            std::thread::yield_now();
        };
        assert!(dir.stat().is_alive());
        assert!(dir.image().exe.contains("python"));
        assert!(dir.image().argv.first().unwrap().ends_with("python3"));
        assert!(matches!(dir.stdio(), [Stdio::Pipe(_), Stdio::Pipe(_), _]));
        assert!(dir.resident_pages().unwrap() > 100);
        assert!(!proc.fd_table(child.id()).unwrap().fds.is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

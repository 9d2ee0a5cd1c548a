//! One process directory of /proc. It stays bound to its process, even when the pid is reused.

use std::os::fd::OwnedFd;

use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
    path::DecInt,
};

use super::{
    COMMAND_LINE_MAX, FdDir, FdTable, Stat, Visit, fields, link, next_apart, numbers, read, watch::visit,
};
use orphand_core::model::{Image, ProcessId, Stdio};

#[derive(Debug)]
pub struct ProcessDir {
    pid: u32,
    dir: OwnedFd,
    /// The directory of a living thread. It is set if the leading thread has exited, because the leader's
    /// own directory then shows no memory or files.
    thread: Option<OwnedFd>,
    stat: Stat,
}

/// What a process runs, as `cmdline` and `exe` show it now.
#[derive(Debug, Default)]
pub struct Running {
    pub image: Image,
    /// As in [`orphand_core::model::SnapshotProcess`].
    pub titled: bool,
    pub stale_binary: bool,
}

/// Bytes of `environ` that are read to find one value.
const ENVIRON_MAX: usize = 1024 * 1024;
/// Bytes of `status` that are read: it is shorter, however long the name and the list of groups (65,536) may be.
const STATUS_MAX: usize = 1024 * 1024;
/// Bytes of `cgroup` that are read: room for a dozen paths of `PATH_MAX`.
pub(super) const CGROUP_MAX: usize = 64 * 1024;
pub(super) const PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl ProcessDir {
    pub(super) fn open(root: &OwnedFd, pid: u32) -> Result<Self, Errno> {
        let dir = openat(root, DecInt::new(pid).as_str(), PATH, Mode::empty())?;
        let stat = stat(&dir)?;
        let thread = if stat.leader_exited() && stat.threads > 1 { living_thread(&dir) } else { None };
        Ok(Self { pid, dir, thread, stat })
    }

    pub fn id(&self) -> ProcessId {
        ProcessId::new(self.pid, self.stat.start)
    }

    /// Marks the current thread as reading this process for as long as the returned guard exists. For
    /// callers that do further reads that the process can block.
    pub fn at(&self) -> Result<Visit, Errno> {
        visit(self.pid)
    }

    /// What waits in this pipe or socket of the process, which stays there. That may take its lock, so a helper looks, and this
    /// takes a quarter of a second at most.
    pub fn waiting_in(&self, file: OwnedFd, limit: usize) -> Result<Vec<u8>, Errno> {
        let waiting = next_apart(self.pid, &file, limit);
        // Who closes a pipe last takes its lock, too.
        let at = self.at();
        drop(file);
        at.and(waiting)
    }

    /// Reads at most `limit` bytes of a file, and whether there is more.
    pub(super) fn file(&self, path: &str, limit: usize) -> Result<(Vec<u8>, bool), Errno> {
        let _at = self.at()?;
        read(self.body(), path, limit)
    }

    /// The same of a file that only the whole process has, and no thread of it (`task/..`, `timers`): the directory of a
    /// living thread lacks it ([`ProcessDir::body`]).
    pub(super) fn file_of_all(&self, path: &str, limit: usize) -> Result<(Vec<u8>, bool), Errno> {
        let _at = self.at()?;
        read(&self.dir, path, limit)
    }

    /// The text of a link: `cwd`, or a namespace, `ns/pid`. Nothing is opened.
    pub fn link(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let _at = self.at()?;
        link(self.body(), path)
    }

    /// The number of its network namespace, which the kernel side knows it by; `None` if it cannot be read.
    pub fn network(&self) -> Option<u32> {
        let link = self.link("ns/net").ok()?;
        str::from_utf8(&link).ok()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
    }

    /// The fields of `stat`, read when the directory was opened.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Whether the process is still alive: it exists and is not a zombie. The answer is `true` on a thread
    /// that was abandoned.
    pub fn still_alive(&self) -> bool {
        let Ok(_at) = self.at() else { return true };
        stat(&self.dir).is_ok_and(|stat| stat.is_alive())
    }

    /// The real user id, from `status`. The owner of the directory would be the effective user, or root.
    pub fn uid(&self) -> Result<u32, Errno> {
        self.status("Uid")
    }

    /// For how many descriptors its table has room: at least as many as are open.
    pub fn table_size(&self) -> Result<u32, Errno> {
        self.status("FDSize")
    }

    pub fn gid(&self) -> Result<u32, Errno> {
        self.status("Gid")
    }

    /// The whole `status`: what follows the list of groups may be far behind.
    pub(super) fn whole_status(&self) -> Result<Vec<u8>, Errno> {
        Ok(self.file_of_all("status", STATUS_MAX)?.0)
    }

    /// The first number on the line `name` of `status`. 4096 bytes are enough: the requested lines are before the
    /// list of groups, and the process name is escaped and at most 15 bytes long.
    fn status(&self, name: &str) -> Result<u32, Errno> {
        let (status, _) = self.file_of_all("status", 4096)?;
        fields::number(&status, name).ok_or(Errno::INVAL)
    }

    /// Translates our user id `uid` into the user namespace of the process; `None` if it has no mapping
    /// there.
    pub fn uid_inside(&self, uid: u32) -> Result<Option<u32>, Errno> {
        // At most 340 lines (`UID_GID_MAP_MAX_EXTENTS`) of three numbers.
        let (map, _) = self.file("uid_map", 16 * 1024)?;
        Ok(std::str::from_utf8(&map).ok().and_then(|map| mapped(map, uid)))
    }

    /// Whether it is pid 1 of its own PID namespace.
    pub fn leads_namespace(&self) -> Result<bool, Errno> {
        Ok(self.pid_inside()? == 1)
    }

    /// Its pid in its own PID namespace: the last value of `NSpid`.
    pub fn pid_inside(&self) -> Result<u32, Errno> {
        self.pids()?.last().copied().ok_or(Errno::INVAL)
    }

    /// Its pids in our PID namespace and in each below to its own.
    pub fn pids(&self) -> Result<Vec<u32>, Errno> {
        self.in_namespaces("NSpid")
    }

    /// What this line of `status` says for each PID namespace, ours first.
    pub(super) fn in_namespaces(&self, name: &str) -> Result<Vec<u32>, Errno> {
        let status = self.whole_status()?;
        Ok(fields::words(&status, name).into_iter().flatten().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// The program that it runs: `exe` (empty if not readable) and `cmdline`. Invalid UTF-8 is replaced.
    pub fn image(&self) -> Image {
        self.program().image
    }

    /// The same, and what else these two files say.
    pub fn program(&self) -> Running {
        let Ok(_at) = self.at() else { return Running::default() };
        let (cmdline, argv_truncated) = read(self.body(), "cmdline", COMMAND_LINE_MAX).unwrap_or_default();
        let (exe, stale_binary) = executable(&link(self.body(), "exe").unwrap_or_default());
        let titled = !argv_truncated && !is_as_started(&cmdline);
        Running { image: Image::new(exe, split_argv(&cmdline), argv_truncated), titled, stale_binary }
    }

    /// Its present command line, at most `most` bytes of it, and whether there is more. The bytes come from
    /// the memory of the process.
    pub fn command_line(&self, most: usize) -> Result<(Vec<u8>, bool), Errno> {
        self.file("cmdline", most)
    }

    pub fn exe(&self) -> String {
        executable(&self.link("exe").unwrap_or_default()).0
    }

    /// Whether it still has its memory, and with it command line and environment. A process that exits gives it up first
    /// (`exit_mm()` in the kernel's `do_exit()`); its link `exe` then leads nowhere (`proc_exe_link()`). The answer is `true`
    /// for a process that cannot be read.
    pub fn has_memory(&self) -> bool {
        self.link("exe") != Err(Errno::NOENT)
    }

    /// Whether its executable was replaced or deleted on disk since it started. The kernel says so in the text
    /// of the link; no path is walked, so this cannot hang on a remote file system, and it holds in any mount
    /// namespace.
    pub fn has_stale_binary(&self) -> bool {
        executable(&self.link("exe").unwrap_or_default()).1
    }

    /// The kinds of its standard streams: input, output, error. All are closed if `fd` is not readable.
    pub fn stdio(&self) -> [Stdio; 3] {
        self.fd_dir().map_or([Stdio::Closed; 3], |fds| [0, 1, 2].map(|number| fds.stdio(number)))
    }

    pub fn fd_dir(&self) -> Result<FdDir, Errno> {
        let _at = self.at()?;
        Ok(FdDir::new(self.pid, openat(self.body(), "fd", PATH, Mode::empty())?))
    }

    pub fn fd_table(&self) -> Result<FdTable, Errno> {
        // The links of a process that has just ended return EACCES, too (`proc_fd_access_allowed()`,
        // fs/proc/base.c).
        FdTable::read(self.body(), "fd", self.pid).map_err(|errno| match errno {
            Errno::ACCESS | Errno::PERM if !self.still_alive() => Errno::SRCH,
            errno => errno,
        })
    }

    /// The pid of the process (`Tgid`). It differs from the number of this directory if the directory is
    /// that of a thread.
    pub fn leader(&self) -> Result<u32, Errno> {
        self.status("Tgid")
    }

    pub fn threads(&self) -> Result<Vec<u32>, Errno> {
        let _at = self.at()?;
        numbers(&self.dir, "task")
    }

    /// The thread that traces its thread `tid`; 0 if none does. `None` means that thread `tid` has ended.
    pub fn tracer(&self, tid: u32) -> Result<Option<u32>, Errno> {
        let Some(status) = self.thread_file(tid, "status")? else { return Ok(None) };
        fields::number(&status, "TracerPid").map(Some).ok_or(Errno::INVAL)
    }

    pub fn tracers(&self) -> Result<Vec<u32>, Errno> {
        let mut tracers = Vec::new();
        for tid in self.threads()? {
            let Some(tracer) = self.tracer(tid)? else { continue };
            tracers.extend((tracer != 0 && !tracers.contains(&tracer)).then_some(tracer));
        }
        Ok(tracers)
    }

    /// The time that its thread `tid` has run, in nanoseconds, from `schedstat`. `None` means that the
    /// thread has ended.
    pub fn running_time(&self, tid: u32) -> Result<Option<u64>, Errno> {
        let Some(schedstat) = self.thread_file(tid, "schedstat")? else { return Ok(None) };
        let field =
            std::str::from_utf8(&schedstat).ok().and_then(|text| text.split_ascii_whitespace().next());
        field.and_then(|field| field.parse().ok()).map(Some).ok_or(Errno::INVAL)
    }

    /// Reads a small file of one of its threads. `None` means that the thread has ended.
    fn thread_file(&self, tid: u32, file: &str) -> Result<Option<Vec<u8>>, Errno> {
        match self.file_of_all(&format!("task/{tid}/{file}"), 4096) {
            Ok((bytes, _)) => Ok(Some(bytes)),
            Err(Errno::NOENT | Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// What it has read and written so far: bytes read, bytes written, and how often it wrote (`syscw`).
    pub fn transfers(&self) -> Result<[u64; 3], Errno> {
        let (io, _) = self.file_of_all("io", 4096)?;
        let field = |name| fields::number::<u64>(&io, name).ok_or(Errno::INVAL);
        Ok([field("rchar")?, field("wchar")?, field("syscw")?])
    }

    /// The value of the variable `name` in its environment at its exec. The first entry counts, as in getenv(3).
    pub fn environment(&self, name: &str) -> Result<Option<Vec<u8>>, Errno> {
        Ok(self.environment_of([name])?.into_iter().next().flatten())
    }

    /// The same of several variables, in one reading.
    pub fn environment_of<const N: usize>(&self, names: [&str; N]) -> Result<[Option<Vec<u8>>; N], Errno> {
        let (environ, _) = self.file("environ", ENVIRON_MAX)?;
        Ok(names.map(|name| {
            let value =
                |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
            environ.split(|&b| b == 0).find_map(value)
        }))
    }

    pub fn cgroup(&self) -> Result<String, Errno> {
        let (text, _) = self.file("cgroup", CGROUP_MAX)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Opens a directory as the process sees it. The path starts at the root directory of the process, and
    /// no link on the way can leave that root.
    pub fn directory_inside(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.inside(path, OFlags::DIRECTORY, ResolveFlags::NO_MAGICLINKS)
    }

    /// Opens a file as the process sees it, resolved in the same way.
    pub fn file_inside(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.inside(path, OFlags::empty(), ResolveFlags::NO_MAGICLINKS)
    }

    /// Opens what has this name, as the process sees it: a symbolic link itself if the path ends in one, an error if
    /// another part of it is one.
    pub fn entry_inside(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.inside(path, OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS)
    }

    /// The descriptor only names the file ([`OFlags::PATH`]).
    fn inside(&self, path: &[u8], flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let _at = self.at()?;
        let root = openat(self.body(), "root", PATH, Mode::empty())?;
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT | resolve)
    }

    /// Opens what a link leads to: a namespace, `ns/net`.
    pub fn open_file(&self, path: &str) -> Result<OwnedFd, Errno> {
        let _at = self.at()?;
        openat(self.body(), path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The directory that shows memory, files and namespaces: that of a living thread if the leading thread
    /// has exited.
    pub(super) fn body(&self) -> &OwnedFd {
        self.thread.as_ref().unwrap_or(&self.dir)
    }
}

fn stat(dir: impl AsFd) -> Result<Stat, Errno> {
    let (line, _) = read(dir, "stat", 4096)?;
    Stat::parse(&line).ok_or(Errno::INVAL)
}

fn living_thread(dir: &OwnedFd) -> Option<OwnedFd> {
    let tids = numbers(dir, "task").ok()?;
    tids.into_iter()
        .filter_map(|tid| openat(dir, format!("task/{tid}"), PATH, Mode::empty()).ok())
        .find(|thread| stat(thread).is_ok_and(|stat| !stat.leader_exited()))
}

/// The path in the link `exe`, and whether the file that it named was replaced or deleted: `d_path()` appends
/// ` (deleted)` then. A program that was replaced (an upgrade) counts as the same program. A program in memory
/// (`memfd_create(2)`) never had a file, and is marked in the same way.
fn executable(link: &[u8]) -> (String, bool) {
    let path = link.strip_suffix(b" (deleted)");
    let stale = path.is_some() && !link.starts_with(b"/memfd:");
    (String::from_utf8_lossy(path.unwrap_or(link)).into_owned(), stale)
}

/// Translates a user id by the text of `uid_map`. Each line has the first id inside, the first id outside,
/// and the count.
pub(super) fn mapped(map: &str, uid: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (inside, outside, count) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
        let at = uid.checked_sub(outside).filter(|at| *at < count)?;
        inside.checked_add(at)
    })
}

/// Whether the command line consists of arguments, each with a NUL behind it. A title that a program wrote over its
/// arguments has no NUL behind it, or more than one. An empty last argument looks the same.
pub fn is_as_started(command: &[u8]) -> bool {
    command.ends_with(&[0]) && !command.ends_with(&[0, 0]) && command.len() > 1
}

/// Splits `/proc/PID/cmdline` into arguments; each argument ends with a NUL. A program that has written a
/// title over its arguments leaves one string, often followed by NULs.
fn split_argv(cmdline: &[u8]) -> Vec<String> {
    let end = cmdline.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    match cmdline.get(..end) {
        None | Some([]) => Vec::new(),
        Some(args) => args.split(|&b| b == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect(),
    }
}

#[cfg(test)]
mod tests;

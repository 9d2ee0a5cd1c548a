//! One directory of /proc: one process, whatever becomes of its number.

use std::os::fd::OwnedFd;

use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
};

use super::{
    FdDir, FdTable, Name, Stat, Visit, each_number,
    environ::{self, Sight},
    fields, link, read,
    statm::Statm,
    watch::visit,
};
use orphand_core::model::{Image, ProcessId, Stdio, redact};

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

    /// As long as this lives we are at this process, which may keep us waiting: for whoever does more with it than is done here.
    pub fn at(&self) -> Result<Visit, Errno> {
        visit(self.pid)
    }

    /// `stat` as it was when the directory was opened.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Whether the process is alive still: neither a zombie nor gone.
    pub fn still_alive(&self) -> bool {
        let Ok(_at) = self.at() else { return true };
        stat(&self.dir).is_ok_and(|stat| stat.is_alive())
    }

    /// Its real user id. Only `status` has it: the directory's owner is the effective one, or root.
    pub fn uid(&self) -> Result<u32, Errno> {
        self.status("Uid")
    }

    /// Its real group id.
    pub fn gid(&self) -> Result<u32, Errno> {
        self.status("Gid")
    }

    /// The first number of a line of `status`. The lines asked for are among the first; names are at most 15 bytes long and escaped.
    fn status(&self, name: &str) -> Result<u32, Errno> {
        let _at = self.at()?;
        let (status, _) = read(&self.dir, "status", 4096)?;
        fields::number(&status, name).ok_or(Errno::INVAL)
    }

    /// The number that this user of ours has in the process's user namespace; none if it has none there.
    pub fn uid_inside(&self, uid: u32) -> Result<Option<u32>, Errno> {
        let _at = self.at()?;
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
        let _at = self.at()?;
        let (status, _) = read(&self.dir, "status", 4096)?;
        let inner = fields::words(&status, "NSpid").and_then(Iterator::last);
        inner.and_then(|pid| pid.parse().ok()).ok_or(Errno::INVAL)
    }

    /// What it runs: `exe` (empty where it cannot be read) and `cmdline`, lossy and redacted.
    pub fn image(&self) -> Image {
        let Ok(_at) = self.at() else { return Image::default() };
        let (cmdline, argv_truncated) = read(self.body(), "cmdline", ARGV_MAX).unwrap_or_default();
        Image { exe: self.exe(), argv: redact::argv(split_argv(&cmdline), argv_truncated), argv_truncated }
    }

    /// At most so many bytes of its command line as it stands in its memory now, and whether there is more.
    pub fn command_line(&self, most: usize) -> Result<(Vec<u8>, bool), Errno> {
        let _at = self.at()?;
        read(self.body(), "cmdline", most)
    }

    /// The file that it runs, as [`Image::exe`] has it.
    pub fn exe(&self) -> String {
        let Ok(_at) = self.at() else { return String::new() };
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
        let _at = self.at()?;
        Ok(FdDir::new(self.pid, openat(self.body(), "fd", PATH, Mode::empty())?))
    }

    /// Its open descriptors.
    pub fn fd_table(&self) -> Result<FdTable, Errno> {
        // The links of a process that has just ended answer EACCES too (`proc_fd_access_allowed()`, fs/proc/base.c).
        FdTable::read(self.body(), "fd", self.pid).map_err(|errno| match errno {
            Errno::ACCESS | Errno::PERM if !self.still_alive() => Errno::SRCH,
            errno => errno,
        })
    }

    /// The process that it is a thread of: the number of a thread names a directory, too.
    pub fn leader(&self) -> Result<u32, Errno> {
        self.status("Tgid")
    }

    /// Its threads, by number.
    pub fn threads(&self) -> Result<Vec<u32>, Errno> {
        let _at = self.at()?;
        let tasks = openat(&self.dir, "task", super::DIRECTORY, Mode::empty())?;
        let mut tids = Vec::new();
        each_number(&tasks, |tid| tids.push(tid))?;
        Ok(tids)
    }

    /// The thread that traces this thread of it, 0 for none; nothing if the thread has ended.
    pub fn tracer(&self, tid: u32) -> Result<Option<u32>, Errno> {
        let Some(status) = self.thread_file(tid, "status")? else { return Ok(None) };
        fields::number(&status, "TracerPid").map(Some).ok_or(Errno::INVAL)
    }

    /// Nanoseconds that this thread of it has run, by `schedstat`; nothing if the thread has ended.
    pub fn running_time(&self, tid: u32) -> Result<Option<u64>, Errno> {
        let Some(schedstat) = self.thread_file(tid, "schedstat")? else { return Ok(None) };
        let field =
            std::str::from_utf8(&schedstat).ok().and_then(|text| text.split_ascii_whitespace().next());
        field.and_then(|field| field.parse().ok()).map(Some).ok_or(Errno::INVAL)
    }

    /// A small file of one of its threads; nothing if the thread has ended.
    fn thread_file(&self, tid: u32, file: &str) -> Result<Option<Vec<u8>>, Errno> {
        let _at = self.at()?;
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
            match FdTable::read(&self.dir, &format!("task/{tid}/fd"), self.pid) {
                Ok(table) => tables.push(table),
                Err(Errno::NOENT | Errno::SRCH) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(tables)
    }

    /// Bytes that it, and all its threads that have ended, has read and written: `rchar` and `wchar` of `io`.
    pub fn bytes_moved(&self) -> Result<u64, Errno> {
        let _at = self.at()?;
        let (io, _) = read(&self.dir, "io", 4096)?;
        let field = |name| fields::number::<u64>(&io, name).ok_or(Errno::INVAL);
        Ok(field("rchar")?.wrapping_add(field("wchar")?))
    }

    /// Whether its environment, as it was at its exec, has this `NAME=VALUE`, wherever it stands. One that cannot be read to
    /// its end counts as one that has it; a process that has ended has none.
    pub fn has_environment(&self, entry: &[u8]) -> bool {
        let Ok(_at) = self.at() else { return true };
        match environ::find(self.body(), entry) {
            Sight::Found => true,
            Sight::Absent => false,
            Sight::Unseen => self.still_alive(),
        }
    }

    /// The value of this variable in its environment as it was at its exec; the first one, as getenv(3) has it.
    pub fn environment(&self, name: &str) -> Result<Option<Vec<u8>>, Errno> {
        let _at = self.at()?;
        let (environ, _) = read(self.body(), "environ", ENVIRON_MAX)?;
        let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
        Ok(environ.split(|&b| b == 0).find_map(value))
    }

    /// Its control groups, `/proc/PID/cgroup`.
    pub fn cgroup(&self) -> Result<String, Errno> {
        let _at = self.at()?;
        let (text, _) = read(self.body(), "cgroup", CGROUP_MAX)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// A directory as the process sees it, by its path from the process' own root, which no link on the way leads out of.
    pub fn directory_inside(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let _at = self.at()?;
        let root = openat(self.body(), "root", PATH, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&root, path, PATH, Mode::empty(), resolve)
    }

    /// A file as the process sees it, in the same way; only to name it ([`OFlags::PATH`]).
    pub fn file_inside(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let _at = self.at()?;
        let root = openat(self.body(), "root", PATH, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// Its `statm`, to be read again and again.
    pub fn statm(&self) -> Result<Statm, Errno> {
        Ok(Statm(self.open_file("statm")?))
    }

    /// Resident set size in bytes.
    pub fn resident_bytes(&self) -> Result<u64, Errno> {
        let _at = self.at()?;
        self.statm()?.resident_bytes()
    }

    /// Proportional set size in bytes, `smaps_rollup`. Costs 15 us and 10 us for each resident megabyte.
    pub fn proportional_bytes(&self) -> Result<u64, Errno> {
        let _at = self.at()?;
        let (rollup, _) = read(self.body(), "smaps_rollup", 8192)?;
        let kib: u64 = fields::number(&rollup, "Pss").ok_or(Errno::INVAL)?;
        Ok(kib.saturating_mul(1024))
    }

    /// Which network namespace it is in: the text of the link.
    pub fn network(&self) -> Result<Vec<u8>, Errno> {
        let _at = self.at()?;
        link(self.body(), "ns/net")
    }

    /// Its network namespace, to be entered.
    pub fn network_namespace(&self) -> Result<OwnedFd, Errno> {
        self.open_file("ns/net")
    }

    /// Its PID namespace, to be entered.
    pub fn pid_namespace(&self) -> Result<OwnedFd, Errno> {
        self.open_file("ns/pid")
    }

    /// A file of its directory, opened for reading.
    pub(super) fn open_file(&self, path: &str) -> Result<OwnedFd, Errno> {
        let _at = self.at()?;
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
mod tests;

//! What processes have done since they started, from the accounts that the kernel keeps of them.

use rustix::io::Errno;

use crate::host::{Proc, ProcessDir};
use orphand_core::model::{ProcessId, Work};

/// What those of these processes have done that are alive and can be read.
pub(crate) fn of_all(proc: &Proc, processes: &[ProcessId]) -> Vec<Work> {
    let of = |process: &ProcessId| {
        let dir = proc.identified(*process).ok().flatten()?;
        work(&dir).ok().filter(|_| dir.still_alive())
    };
    processes.iter().filter_map(of).collect()
}

/// What a process has done since it started. Of one that is kept from running that says nothing: it could do nothing, and
/// goes on some day. It counts as one that cannot be read.
pub(crate) fn work(dir: &ProcessDir) -> Result<Work, Errno> {
    if dir.is_held()? {
        return Err(Errno::AGAIN);
    }
    let [read_bytes, written_bytes, writes] = dir.transfers()?;
    Ok(Work { process: dir.id(), cpu_ns: running_time(dir)?, read_bytes, written_bytes, writes })
}

fn running_time(dir: &ProcessDir) -> Result<u64, Errno> {
    let mut cpu_ns = 0_u64;
    for tid in dir.threads()? {
        cpu_ns = cpu_ns.wrapping_add(dir.running_time(tid)?.unwrap_or_default());
    }
    // Every process has run for some time. Zero means that this kernel does not keep the account.
    if cpu_ns == 0 {
        return Err(Errno::NOSYS);
    }
    Ok(cpu_ns)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::probe::tests::id;

    #[test]
    fn a_request_shows_and_rest_does_not() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut answers = BufReader::new(cat.stdout.take().unwrap());
        let mut requests = cat.stdin.take().unwrap();
        let id = id(cat.id());
        let proc = Proc::system().unwrap();
        let mut ask = || {
            requests.write_all(b"0123456\n").unwrap();
            answers.read_line(&mut String::new()).unwrap();
        };
        // It is shown as waiting a moment before it stops running.
        let waits = || proc.process(id.pid).unwrap().stat().state == b'S';
        let rests = || loop {
            let before = of_all(&proc, &[id]);
            if waits() && !before.is_empty() && before == of_all(&proc, &[id]) && waits() {
                return before[0];
            }
            std::thread::yield_now();
        };
        ask();
        let before = rests();
        ask();
        let after = rests();
        assert_eq!(after.process, id);
        assert!(after.cpu_ns > before.cpu_ns);
        assert_eq!(
            (after.read_bytes, after.written_bytes),
            (before.read_bytes + 8, before.written_bytes + 8)
        );
        assert_eq!(after.writes, before.writes + 1);
        let pid = nix::unistd::Pid::from_raw(id.pid.try_into().unwrap());
        let state = || proc.process(id.pid).unwrap().stat().state;
        for (signal, stopped) in [(nix::sys::signal::SIGSTOP, true), (nix::sys::signal::SIGCONT, false)] {
            nix::sys::signal::kill(pid, signal).unwrap();
            while (state() == b'T') != stopped {
                std::thread::yield_now();
            }
            assert_eq!(of_all(&proc, &[id]).is_empty(), stopped, "who is stopped cannot do anything");
        }
        drop(requests);
        cat.wait().unwrap();
        assert_eq!(of_all(&proc, &[id]), []);
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn who_is_frozen_cannot_do_anything() {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let at = |kind: &str| mounts.lines().find(|line| line.contains(kind))?.split(' ').nth(1);
        is_seen_frozen(at(" cgroup2 ").expect("no cgroup2 is mounted"), "cgroup.freeze", ["0", "1"]);
        if let Some(legacy) = at(",freezer ") {
            is_seen_frozen(legacy, "freezer.state", ["THAWED", "FROZEN"]);
        }
    }

    /// One that waits at a socket, which version 1 freezes where it sleeps.
    fn is_seen_frozen(mount: &str, switch: &str, states: [&str; 2]) {
        let group = format!("{mount}/orphand-frozen-{}", std::process::id());
        std::fs::create_dir(&group).unwrap();
        let (ours, input) = std::os::unix::net::UnixStream::pair().unwrap();
        let input = std::os::fd::OwnedFd::from(input);
        let mut cat = Command::new("cat").stdin(input).stdout(Stdio::null()).spawn().unwrap();
        std::fs::write(format!("{group}/cgroup.procs"), cat.id().to_string()).unwrap();
        let (proc, id) = (Proc::system().unwrap(), id(cat.id()));
        let dir = || proc.process(id.pid).unwrap();
        while dir().sleeps_in(id.pid).unwrap().is_none() {
            std::thread::yield_now();
        }
        for frozen in [true, false] {
            std::fs::write(format!("{group}/{switch}"), states[usize::from(frozen)]).unwrap();
            while of_all(&proc, &[id]).is_empty() != frozen {
                std::thread::yield_now();
            }
            while dir().sleeps_in(id.pid).unwrap().is_none() != frozen {
                std::thread::yield_now();
            }
        }
        drop(ours);
        cat.wait().unwrap();
        std::fs::remove_dir(group).unwrap();
    }
}

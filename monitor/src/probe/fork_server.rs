//! Python's fork servers (`multiprocessing`, its default on Linux from Python 3.14 on). A program that starts its workers
//! through one calls it by short connections to a named unix socket, which leave no trace of who called.
//!
//! The name is random, in a private directory, and only the program and its workers know it. Each of these has the write
//! end of a pipe that the fork server reads (the fork server ends with the last of them), and hands it over with every
//! call. So whoever has that end is who may use the fork server, instead of whoever may have connected.

use super::server::Looked;
use crate::host::{Proc, Target};
use orphand_core::model::Image;

/// What a fork server has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForkServer {
    /// The inode number of its listener.
    pub listener: u64,
    /// The inode number of the pipe whose write end its users have.
    pub users: u64,
}

/// The fork server that this process is; `None` if it is none, or has not both descriptors open.
pub(super) fn of(proc: &Proc, one: &Looked) -> Option<ForkServer> {
    let target = |number: u32| Some(&one.table.fds.iter().find(|fd| fd.number == number)?.target);
    one.table.sockets().next()?;
    let [listener, users] = descriptors(&proc.identified(one.process).ok()??.image())?;
    match (target(listener)?, target(users)?) {
        (&Target::Socket(listener), &Target::Pipe(users)) => Some(ForkServer { listener, users }),
        _ => None,
    }
}

/// The numbers of both descriptors, from the program that `multiprocessing` gives to Python.
fn descriptors(image: &Image) -> Option<[u32; 2]> {
    const PROGRAM: &str = "from multiprocessing.forkserver import main; main(";
    let at = image.argv.iter().position(|argument| argument == "-c")?;
    let mut arguments = image.argv.get(at + 1)?.strip_prefix(PROGRAM)?.split(", ");
    let mut number = || arguments.next()?.parse().ok();
    Some([number()?, number()?])
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        process::{Command, Stdio as Std},
    };

    use super::*;
    use crate::probe::tests::{Started, facts, id, look};
    use orphand_core::model::{ProcessId, SocketUse, Stdio, Subject};

    /// A program with a worker that a fork server started. Prints the numbers of the fork server and of the worker.
    const PROGRAM: &str = "import multiprocessing as m, multiprocessing.forkserver as f, time
def rest(told):
    told.send(1); time.sleep(600)
def main():
    here, there = m.get_context('forkserver').Pipe()
    worker = m.get_context('forkserver').Process(target=rest, args=(there,)); worker.start(); here.recv()
    print(f._forkserver._forkserver_pid, worker.pid, flush=True); time.sleep(600)
if __name__ == '__main__': main()
";

    fn uses(processes: &[ProcessId], of: ProcessId) -> SocketUse {
        let subject = Subject { processes: processes.to_vec(), ..Subject::default() };
        look(&subject).processes.into_iter().find(|found| found.process == of).unwrap().sockets
    }

    #[test]
    fn who_has_the_pipe_of_a_fork_server_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("program.py");
        std::fs::write(&script, PROGRAM).unwrap();
        let mut command = Command::new("python3");
        let (program, line) = Started::line_of(command.arg(&script).stdin(Std::null()));
        let (fork_server, worker) = line.split_once(' ').unwrap();
        let [fork_server, worker] = [fork_server, worker].map(|pid| id(pid.parse().unwrap()));
        let all = [program.id(), fork_server, worker];

        // Each of them is told, so that a worker that was let go counts. That nobody outside has the pipe, only a pass of the
        // kernel tells.
        let found = uses(&all, fork_server);
        let expected = BTreeSet::from([program.id(), worker]);
        assert_eq!((found.listens, BTreeSet::from_iter(found.inside)), (true, expected));
        assert!(uses(&[program.id(), fork_server], fork_server).clients, "a worker is outside");
        for process in [worker, fork_server] {
            crate::probe::tests::end(process);
        }
        assert!(facts(&[program.id()], Stdio::Null).blind.is_none());
    }

    #[test]
    fn the_program_says_which_descriptors() {
        let image = |argv: &[&str]| Image {
            argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
            ..Image::default()
        };
        for (code, numbers) in [
            ("from multiprocessing.forkserver import main; main(5, 6, ['__main__'], **{})", Some([5, 6])),
            ("from multiprocessing.forkserver import main; main(17, 20, [], **{'a': 1})", Some([17, 20])),
            ("from multiprocessing.forkserver import main; main(x, 6, [])", None),
            ("from multiprocessing.forkserver import main; main(5", None),
            ("print('from multiprocessing.forkserver import main; main(5, 6, [])')", None),
        ] {
            assert_eq!(descriptors(&image(&["/usr/bin/python3", "-I", "-c", code])), numbers, "{code}");
        }
        assert_eq!(descriptors(&image(&["python3", "-c"])), None);
        assert_eq!(descriptors(&image(&["python3", "server.py"])), None);
    }
}

//! All processes of the host, as the kernel tells them: against /proc, and against what an actor made.

use std::{collections::BTreeMap, time::Instant};

use crate::{stage::options, stand::Stand};
use orphand::{
    host::{Proc, TaskRow},
    source::kernel::KernelSource,
};
use orphand_core::model::ProcessId;

/// Others may begin, change and end between two looks.
const TRIES: u32 = 10;

fn by_process(rows: Vec<TaskRow>) -> BTreeMap<ProcessId, TaskRow> {
    rows.into_iter().map(|row| (row.process, TaskRow { terminal: row.pty(), ..row })).collect()
}

/// Whether they say the same, as far as /proc says something.
fn agree(told: &TaskRow, read: &TaskRow) -> bool {
    let mut told = told.clone();
    if read.namespace.inode == 0 {
        told.namespace.inode = 0;
    }
    // /proc tells neither with whom a process ends nor which line of a number it has.
    (told.ends_with, told.line) = (None, 0);
    told == *read
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_kernel_tells_of_every_process_what_proc_tells() {
    let stand = Stand::new(
        r#"
import pty
# Whoever started the tests may ignore it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
who("actor")
there, terminal = pty.fork()
if there == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.write(1, b"x"); until_the_end()
os.read(terminal, 1)
who("there", there)
say(pty=int(os.readlink(f"/proc/{there}/fd/0").rsplit("/")[-1]))
"#,
    );
    let source = &mut KernelSource::open(&options()).unwrap();
    let tasks = source.side().tasks.unwrap();
    let proc = Proc::system().unwrap();
    let mut differ: Option<Vec<ProcessId>> = None;
    for _ in 0..TRIES {
        let begin = Instant::now();
        let told = by_process(tasks.tasks().unwrap());
        let took = begin.elapsed();
        let read = by_process(proc.tasks().unwrap());
        println!(
            "{} processes: {took:?}, and {:?} by /proc",
            told.len(),
            begin.elapsed().saturating_sub(took)
        );
        let is_other = |process: &&ProcessId| {
            // Some hosts hide their first process, which ends with no other.
            process.pid != 1
                && !told.get(process).zip(read.get(process)).is_some_and(|(told, read)| agree(told, read))
        };
        let others = told.keys().chain(read.keys()).filter(is_other).copied();
        differ = Some(match differ {
            None => others.collect(),
            Some(before) => others.filter(|process| before.contains(process)).collect(),
        });
        if differ.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
        for process in differ.iter().flatten() {
            println!("{process}: {:?} {:?}", told.get(process), read.get(process));
        }
    }
    assert_eq!(differ, Some(Vec::new()));
    let told = by_process(tasks.tasks().unwrap());
    let there = &told[&stand.who("there")];
    let expected = (Some(u32::try_from(stand.number("pty")).unwrap()), there.process.pid);
    assert_eq!((there.terminal, there.session), expected);
    let actor = &told[&stand.who("actor")];
    assert_eq!(actor.terminal, None);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn namespaces_and_tracers_are_told() {
    let stand = Stand::new(
        r#"
CLONE_NEWPID = 0x20000000
PTRACE_SEIZE = 0x4206
ids = []
def thread(): ids.append(threading.get_native_id()); time.sleep(600)
def traced():
    threading.Thread(target=thread, daemon=True).start()
    while not ids: pass
    os.write(tell, f"{ids[0]}".encode()); until_the_end()
pid = os.fork()
if pid == 0: traced()
tid = int(os.read(done, 16))
assert libc.ptrace(PTRACE_SEIZE, tid, None, None) == 0
assert libc.unshare(CLONE_NEWPID) == 0
first = child(lambda: None)
who("actor"); who("traced", pid); who("first", first)
say(namespace=os.stat(f"/proc/{first}/ns/pid").st_ino)
"#,
    );
    let source = &mut KernelSource::open(&options()).unwrap();
    let tasks = source.side().tasks.unwrap();
    let told = by_process(tasks.tasks().unwrap());
    let [actor, traced, first] = ["actor", "traced", "first"].map(|name| &told[&stand.who(name)]);
    assert_eq!(traced.tracers, [actor.process.pid]);
    assert_eq!((actor.tracers.as_slice(), first.tracers.as_slice()), (&[][..], &[][..]));
    assert_eq!(u64::from(first.namespace.inode), stand.number("namespace"));
    assert_eq!((first.namespace.level, first.namespace.number), (actor.namespace.level + 1, 1));
    assert_eq!((actor.namespace.number, actor.dead, first.dead), (actor.process.pid, false, false));
}

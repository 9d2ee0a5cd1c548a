//! Threads: which one forked, and the end of those that are followed.

use std::num::NonZeroU32;

use orphand::source::{
    kernel::{KernelOptions, KernelSource},
    threads::Followed,
};
use orphand_core::model::{BootTime, ProcessEvent, ProcessId, Tracking};

use crate::stage::{Actor, drain_until, drain_until_exit, execs, exits, options};

/// `job()` starts a thread that forks a child, tells its own number and birth, and ends when `end(job)` says so,
/// which waits for that: `join()` returns a moment before.
const JOBS: &str = r#"
def job(work=lambda: None):
    started, over = threading.Event(), threading.Event()
    def run():
        os.fork() or os._exit(0)
        wait()
        tid = threading.get_native_id()
        born = int(open(f"/proc/self/task/{tid}/stat").read().rsplit(") ", 1)[1].split()[19])
        os.write(1, (json.dumps(dict(pid=tid, start=born)) + "\n").encode())
        started.set(); over.wait(); work()
    thread = threading.Thread(target=run)
    thread.start(); started.wait()
    return thread, over
def end(job):
    job[1].set(); job[0].join()
    while os.path.exists(f"/proc/self/task/{job[0].native_id}"): time.sleep(0.001)
"#;

/// An agent that runs this.
fn agent(source: &mut KernelSource, script: &str) -> Actor {
    let actor = Actor::wait_for_the_word(&format!("{JOBS}\n{script}"));
    assert!(source.members.track(actor.id, Tracking::Agent).unwrap().is_followed());
    actor
}

fn follow(source: &mut KernelSource, process: ProcessId, thread: ProcessId) -> Followed {
    source.threads.follow(process, number(thread), thread.start).unwrap()
}

fn number(thread: ProcessId) -> NonZeroU32 {
    NonZeroU32::new(thread.pid).unwrap()
}

/// The threads of `of` whose end was told.
fn ended(events: &[ProcessEvent], of: ProcessId) -> Vec<u32> {
    let thread = |e: &ProcessEvent| match e {
        ProcessEvent::ThreadExit { process, thread, .. } if *process == of => Some(thread.get()),
        _ => None,
    };
    events.iter().filter_map(thread).collect()
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_end_of_a_thread_is_told_if_it_is_followed() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut agent = agent(
        &mut source,
        "one, two, three = job(), job(), job()\nos.fork() or os._exit(0)\nwait()\ngo(); end(two)\ngo(); end(one); end(three)\ngo()",
    );
    let id = agent.id;
    agent.word();
    let [one, two, three] = [(); 3].map(|()| agent.told());
    for followed in [one, two, two] {
        assert_eq!(follow(&mut source, id, followed), Followed::Yes);
    }
    let mut events = Vec::new();
    agent.word();
    drain_until(&mut source, &mut events, |events| !ended(events, id).is_empty());
    assert_eq!(ended(&events, id), [two.pid]);
    agent.word();
    drain_until(&mut source, &mut events, |events| ended(events, id).len() > 1);
    agent.word();
    agent.finish();
    events.extend(drain_until_exit(&mut source, id));
    assert_eq!(ended(&events, id), [two.pid, one.pid], "each once, and not {three}");
    assert_eq!(exits(&events, id).len(), 1);

    // Each fork names its thread; the leading one has no number of its own.
    let threads: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            ProcessEvent::Fork { creator, thread, .. } if *creator == id => Some(*thread),
            _ => None,
        })
        .collect();
    let number = |thread: ProcessId| Some(number(thread));
    assert_eq!(threads, [number(one), number(two), number(three), None]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_end_of_a_process_is_not_that_of_its_threads() {
    let mut source = KernelSource::open(&options()).unwrap();
    for end in ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL); time.sleep(60)"] {
        let mut agent = agent(&mut source, &format!("one = job()\ngo()\n{end}"));
        let id = agent.id;
        agent.word();
        let one = agent.told();
        assert_eq!(follow(&mut source, id, one), Followed::Yes);
        agent.word();
        let events = drain_until_exit(&mut source, id);
        assert_eq!(ended(&events, id), [0; 0], "{events:#?}");
        agent.finish();
        assert_eq!(follow(&mut source, id, one), Followed::No, "there is no such process");
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn one_that_has_ended_is_told_at_once() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut agent =
        agent(&mut source, "one, two = job(), job()\nend(one)\nsay('ended')\ngo(); end(two)\ngo()");
    let id = agent.id;
    agent.word();
    let [one, two, _] = [(); 3].map(|()| agent.told());
    let Followed::Ended { at } = follow(&mut source, id, one) else { panic!() };
    assert!(at.ticks() >= one.start);
    // The number belongs to a thread that began later than the one that is meant.
    let earlier = source.threads.follow(id, number(two), two.start - 1).unwrap();
    assert_eq!(earlier, Followed::Ended { at: BootTime::of_ticks(two.start - 1) });
    // That thread is told when it ends: it may be meant, too.
    agent.word();
    let mut events = Vec::new();
    drain_until(&mut source, &mut events, |events| !ended(events, id).is_empty());
    assert_eq!(ended(&events, id), [two.pid]);
    agent.word();
    agent.finish();
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn an_exec_by_another_thread_comes_after_the_end_of_all() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut agent = agent(
        &mut source,
        "one = job()\ntwo = job(lambda: os.execv('/bin/true', ['true']))\ngo(); two[1].set(); time.sleep(60)",
    );
    let id = agent.id;
    agent.word();
    let [one, two] = [(); 2].map(|()| agent.told());
    for thread in [one, two] {
        assert_eq!(follow(&mut source, id, thread), Followed::Yes);
    }
    agent.word();
    let events = drain_until_exit(&mut source, id);
    agent.finish();
    // The thread that calls execve(2) goes on under the number of its process.
    assert_eq!(ended(&events, id), [one.pid]);
    let at = |wanted: &ProcessEvent| events.iter().position(|event| event == wanted);
    let exec = *execs(&events, id).last().unwrap();
    let end = events.iter().position(|event| matches!(event, ProcessEvent::ThreadExit { .. }));
    assert!(end < at(exec), "{events:#?}");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_full_map_is_counted_and_swept() {
    // One user has half of the room.
    let mut source = KernelSource::open(&KernelOptions { threads: 4, ..options() }).unwrap();
    let script = "jobs = [job() for _ in range(3)]\ngo(); end(jobs[0])\ngo(); os._exit(0)";
    let mut living = agent(&mut source, script);
    let id = living.id;
    living.word();
    let [one, two, three] = [(); 3].map(|()| living.told());
    assert_eq!(
        [one, two, three].map(|thread| follow(&mut source, id, thread)),
        [Followed::Yes, Followed::Yes, Followed::No]
    );
    assert_eq!(source.errors().unwrap()["threads_full"], 1);
    living.word();
    let mut events = Vec::new();
    drain_until(&mut source, &mut events, |events| !ended(events, id).is_empty());
    assert_eq!(follow(&mut source, id, three), Followed::Yes, "the end of another made room");
    // Its threads end while it is no agent any more: nobody removes them until the room is needed.
    source.members.untrack(id.pid).unwrap();
    living.word();
    living.finish();
    let mut other = agent(&mut source, "one = job()\ngo()\nos._exit(0)");
    other.word();
    let four = other.told();
    assert_eq!(follow(&mut source, other.id, four), Followed::Yes);
    assert_eq!(source.errors().unwrap()["threads_full"], 1);
    other.word();
    other.finish();
}

//! Bounds: a full ring, a full map, a fork bomb. What is lost is counted, and others lose nothing.

use std::{os::unix::fs::symlink, thread};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use orphand::source::kernel::{KernelOptions, KernelSource};
use orphand_core::{
    model::{Losses, Tracking},
    recognise::Candidate,
};

use crate::stage::{Actor, drain_until_exit, forks, options, play_on, python, subject};

const FIFTY: &str = r"
for _ in range(50):
    os.fork() or os._exit(0)
    wait()
";

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_full_ring_counts_what_it_loses() {
    let mut source = KernelSource::open(&KernelOptions { ring_bytes: 4096, ..options() }).unwrap();
    let actor = Actor::wait_for_the_word(FIFTY);
    let root = actor.id;
    assert!(source.members.track(root, Tracking::Member).unwrap().is_followed());
    actor.run();
    let mut decoded = 0;
    source.drain(|_| decoded += 1);
    let lost = source.losses().unwrap();
    let made = source.counters().unwrap().made();
    assert_eq!((made, Losses { member: 0, ..lost }), (decoded, Losses::default()));
    assert!(lost.member > 0, "{lost:?}");
    assert_eq!(source.members.refused().unwrap(), [0], "whose they were");
    assert_eq!(source.losses().unwrap(), Losses::default(), "told once");

    // Once drained it works as before: records were lost, memberships were not.
    let play = play_on(&mut source, "os.fork() or os._exit(0)\nwait()");
    assert_eq!(play.events.len(), 3, "{:#?}", play.events);
}

/// Ten children at once.
const TEN: &str = r"
r, w = os.pipe()
for _ in range(10):
    if os.fork() == 0:
        os.close(w); os.read(r, 1); os._exit(0)
os.close(w)
for _ in range(10): wait()
";

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn whoever_has_no_room_is_counted_and_not_told_by_half() {
    // The share of a user is half of that; one is the actor's own.
    let mut source = KernelSource::open(&KernelOptions { members: 8, ..options() }).unwrap();
    let play = play_on(&mut source, TEN);
    let told = forks(&play.events);
    let ends =
        play.events.iter().filter(|e| matches!(e, orphand_core::model::ProcessEvent::Exit { .. })).count();
    let lost = source.losses().unwrap();
    assert!((1..=4).contains(&told), "{told} of 10 told");
    assert_eq!(ends, told + 1, "{:#?}", play.events);
    assert_eq!((lost.member, lost.fork), (10 - told as u64, 0), "{lost:?}");
    assert_eq!(source.members.refused().unwrap(), [0]);
    assert_eq!(source.members.refused().unwrap(), Vec::<u32>::new(), "told once");
    // All have ended: what they had is free again.
    for _ in 0..3 {
        let play = play_on(&mut source, "os.fork() or os._exit(0)\nwait()");
        assert_eq!(play.events.len(), 3, "{:#?}", play.events);
    }
    assert_eq!(source.losses().unwrap(), Losses::default());
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn one_user_leaves_room_for_another() {
    let mut source = KernelSource::open(&KernelOptions { members: 16, ..options() }).unwrap();
    let crowd = Actor::wait_for_the_word(&format!("os.setuid(64003)\n{TEN}"));
    let (id, mut events) = (crowd.id, Vec::new());
    assert!(source.members.track(id, Tracking::Member).unwrap().is_followed());
    crowd.run();
    source.drain(|event| events.push(event));
    assert!(forks(&events) <= 8, "{}", forks(&events));
    assert_eq!(source.members.refused().unwrap(), [64_003]);
    // Entered by user space, which keeps to the same shares: four processes of root's, for whom there is room.
    let play = play_on(&mut source, "for _ in range(4):\n    os.fork() or os._exit(0)\n    wait()");
    assert_eq!(forks(&play.events), 4);
    assert_eq!(source.members.refused().unwrap(), Vec::<u32>::new());
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn what_is_forgotten_gives_back_its_room() {
    let mut source = KernelSource::open(&KernelOptions { members: 8, ..options() }).unwrap();
    for _ in 0..20 {
        let actor = Actor::wait_for_the_word("os.fork() or os._exit(0)\nwait()");
        let id = actor.id;
        assert!(source.members.track(id, Tracking::Member).unwrap().is_followed());
        source.members.untrack(id.pid).unwrap();
        assert!(source.members.track(id, Tracking::Agent).unwrap().is_followed(), "tracked again");
        actor.run();
    }
    source.drain(|_| {});
    assert_eq!(source.losses().unwrap(), Losses::default());
    assert!(source.members.has_room_again(0));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_fork_bomb_below_a_candidate_takes_its_budget_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("orphand-b1");
    symlink(python(), &file).unwrap();
    let budget = 16;
    let candidates = vec![Candidate { comm: "orphand-b1".to_owned(), needs_wire: false }];
    let mut source =
        KernelSource::open(&KernelOptions { candidates, pending_budget: budget, ..options() }).unwrap();
    let bomb = Actor::called(
        file.to_str().unwrap(),
        r"
def bomb(depth):
    for _ in range(4):
        if os.fork() == 0:
            if depth: bomb(depth - 1)
            os._exit(0)
    for _ in range(4): wait()
bomb(3)   # 340 processes
",
    );
    let agent = Actor::wait_for_the_word(FIFTY);
    let (bomb_root, agent_root) = (bomb.id, agent.id);
    assert!(source.members.track(agent_root, Tracking::Agent).unwrap().is_followed());
    let bombing = std::thread::spawn(move || bomb.run());
    agent.run();
    bombing.join().unwrap();
    let mut events = drain_until_exit(&mut source, agent_root);
    if crate::stage::exits(&events, bomb_root).is_empty() {
        events.extend(drain_until_exit(&mut source, bomb_root));
    }
    let lost = source.losses().unwrap();
    let by_agent = |e: &&orphand_core::model::ProcessEvent| matches!(e, orphand_core::model::ProcessEvent::Fork { creator, .. } if *creator == agent_root);
    assert_eq!(events.iter().filter(by_agent).count(), 50);
    // Two CPUs may count two forks as one.
    let reported = forks(&events) - 50;
    assert!((budget as usize..=budget as usize + 8).contains(&reported), "{reported} reported");
    assert_eq!(lost, Losses::default(), "a stranger's bomb is no loss");
    assert!(source.errors().unwrap()["pending_budget"] > 0);
    assert!(events.iter().any(|e| subject(e) == bomb_root));
}

/// What is pending below a candidate that was confirmed is followed though so many others came since that the verdict is forgotten.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_storm_of_candidates_takes_no_verdict_away() {
    // On one CPU: each has a list of its own of what was entered there, and what is in that of another one may stay.
    thread::spawn(|| {
        let (all, mut one) = (sched_getaffinity(None).unwrap(), CpuSet::new());
        one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
        sched_setaffinity(None, &one).unwrap();
        storm_of_candidates();
    })
    .join()
    .unwrap();
}

fn storm_of_candidates() {
    let dir = tempfile::tempdir().unwrap();
    let called = |name: &str, target: &std::path::Path| {
        let file = dir.path().join(name);
        symlink(target, &file).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (file, many) =
        (called("orphand-a1", python()), called("orphand-a2", std::path::Path::new("/bin/true")));
    let candidates =
        ["orphand-a1", "orphand-a2"].map(|comm| Candidate { comm: comm.to_owned(), needs_wire: false });
    let options = KernelOptions { candidates: candidates.to_vec(), pending_budget: 16, ..options() };
    let mut source = KernelSource::open(&options).unwrap();
    let mut actor = Actor::called(
        &file,
        &format!("if os.fork() == 0:\n    go()\n{}\n    os._exit(0)\nwait()", indented()),
    );
    let id = actor.id;
    actor.word();
    let mut before = Vec::new();
    let begun = std::time::Instant::now();
    while forks(&before) == 0 {
        assert!(begun.elapsed().as_secs() < 20, "no fork: {before:#?}");
        source.drain(|event| before.push(event));
    }
    assert!(source.members.track(id, Tracking::Member).unwrap().is_followed());
    let storm = format!("for _ in range(10000):\n    os.posix_spawn('{many}', ['x'], {{}})\n    wait()");
    Actor::wait_for_the_word(&storm).run();
    source.drain(|_| {});
    let forgotten = |source: &KernelSource| source.errors().unwrap()["anchor_forgotten"];
    assert_eq!(forgotten(&source), 0);
    actor.word();
    actor.finish();
    let mut after = Vec::new();
    source.drain(|event| after.push(event));
    assert_eq!(forks(&after), 50);
    assert_eq!(forgotten(&source), 50, "and counted");
    assert_eq!(source.errors().unwrap()["pending_budget"], 0);
}

fn indented() -> String {
    FIFTY.replace('\n', "\n    ")
}

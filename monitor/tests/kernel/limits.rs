//! Bounds: a full ring, a full map, a fork bomb. What is lost is counted, and others lose nothing.

use std::os::unix::fs::symlink;

use monitor::{
    model::{Losses, Tracking},
    recognise::Candidate,
    source::kernel::{KernelOptions, KernelSource},
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
    assert!(source.track(root, Tracking::Member).unwrap());
    actor.run();
    let mut decoded = 0;
    source.drain(|_| decoded += 1);
    let lost = source.losses().unwrap();
    let produced = source.produced().unwrap();
    assert_eq!((produced.fork, produced.exit), (50, 51));
    assert!(lost.fork > 0 && lost.exit > 0, "{lost:?}");
    assert_eq!(produced.total(), decoded + lost.fork + lost.exec + lost.exit + lost.setsid);
    assert_eq!(source.losses().unwrap(), Losses::default(), "told once");

    // Once drained it works as before: the exits were lost, the memberships were not.
    let play = play_on(&mut source, "os.fork() or os._exit(0)\nwait()");
    assert_eq!(play.events.len(), 3, "{:#?}", play.events);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_large_ring_loses_nothing_of_the_same() {
    let mut source = KernelSource::open(&options()).unwrap();
    let play = play_on(&mut source, FIFTY);
    assert_eq!(play.events.len(), 101);
    assert_eq!(source.losses().unwrap(), Losses::default());
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_full_map_counts_and_still_reports_the_fork() {
    let mut source = KernelSource::open(&KernelOptions { members: 4, ..options() }).unwrap();
    let play = play_on(
        &mut source,
        r"
r, w = os.pipe()
for _ in range(10):
    if os.fork() == 0:
        os.close(w); os.read(r, 1); os._exit(0)
os.close(w)
for _ in range(10): wait()
",
    );
    assert_eq!(forks(&play.events), 10);
    let lost = source.losses().unwrap();
    assert!(lost.member > 0 && lost.fork == 0, "{lost:?}");
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
    assert!(source.track(agent_root, Tracking::Agent).unwrap());
    let bombing = std::thread::spawn(move || bomb.run());
    agent.run();
    bombing.join().unwrap();
    let mut events = drain_until_exit(&mut source, agent_root);
    if crate::stage::exits(&events, bomb_root).is_empty() {
        events.extend(drain_until_exit(&mut source, bomb_root));
    }
    let lost = source.losses().unwrap();
    let by_agent = |e: &&monitor::model::ProcessEvent| matches!(e, monitor::model::ProcessEvent::Fork { creator, .. } if *creator == agent_root);
    assert_eq!(events.iter().filter(by_agent).count(), 50);
    // Two CPUs may count two forks as one.
    let reported = forks(&events) - 50;
    assert!((budget as usize..=budget as usize + 8).contains(&reported), "{reported} reported");
    assert_eq!(lost, Losses::default(), "a stranger's bomb is no loss");
    assert!(source.unfollowed().unwrap() > 0);
    assert!(events.iter().any(|e| subject(e) == bomb_root));
}

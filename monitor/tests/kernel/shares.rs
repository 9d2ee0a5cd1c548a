//! What one user may have of the ring and of the map, and that whatever was taken is given back.

use std::os::unix::fs::symlink;

use orphand::source::kernel::{KernelOptions, KernelSource};
use orphand_core::{
    model::{Losses, ProcessEvent, Tracking},
    recognise::Candidate,
};

use crate::stage::{Actor, drain_until, drain_until_exit, exits, forks, options, play_on, python, subject};

/// More processes than any ring here holds the records of.
const STORM: &str = r"
for _ in range(400):
    os.fork() or os._exit(0)
    wait()
";

/// Room for some 150 processes' records.
const RING: u32 = 16 << 10;

/// Runs a storm of this user, of which nothing is read meanwhile. What came into the ring of it.
fn storm(source: &mut KernelSource, uid: u32) -> Actor {
    let mut storm = Actor::wait_for_the_word(&format!("os.setuid({uid})\ngo()\n{STORM}\nsay('over')\ngo()"));
    assert!(source.members.track(storm.id, Tracking::Member).unwrap().is_followed());
    storm.word();
    storm.word();
    storm.told();
    storm
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn storms_of_others_take_no_record_away() {
    let mut source = KernelSource::open(&KernelOptions { ring_bytes: RING, ..options() }).unwrap();
    let quiet = Actor::wait_for_the_word("for _ in range(5):\n    os.fork() or os._exit(0)\n    wait()");
    let root = quiet.id;
    assert!(source.members.track(root, Tracking::Agent).unwrap().is_followed());
    let storms = [64_003, 64_004, 64_005].map(|uid| storm(&mut source, uid));
    quiet.run();
    // Only now is anything read.
    let events = drain_until_exit(&mut source, root);
    let of_quiet = |e: &&ProcessEvent| matches!(e, ProcessEvent::Fork { creator, .. } if *creator == root);
    assert_eq!(events.iter().filter(of_quiet).count(), 5, "{:#?}", source.losses());
    let lost = source.losses().unwrap();
    assert_eq!(Losses { member: 0, ..lost }, Losses::default(), "nothing that nobody answers for");
    assert!(lost.member > 0, "the storms filled nothing: nothing was tried");
    let mut refused = source.members.refused().unwrap();
    refused.sort_unstable();
    assert_eq!(refused, [64_003, 64_004, 64_005]);
    for storm in storms {
        storm.run();
    }
}

/// The twin: who storms pays, whoever it is. Once his records were read, he has room again.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_storms_has_half_of_the_ring_and_is_told() {
    let mut source = KernelSource::open(&KernelOptions { ring_bytes: RING, ..options() }).unwrap();
    let storm = storm(&mut source, 0);
    let mut taken = Vec::new();
    source.drain(|event| taken.push(event));
    let bytes = forks(&taken) * 56 + (taken.len() - forks(&taken)) * 40;
    let half = RING as usize / 2;
    assert!((half..half + 512).contains(&bytes), "{bytes} bytes of {RING}");
    let lost = source.losses().unwrap();
    assert!(lost.member > 0 && lost.fork == 0, "{lost:?}");
    assert_eq!(source.members.refused().unwrap(), [0]);
    storm.run();
    source.drain(|_| {});
    assert!(source.losses().is_ok());
    let play = play_on(&mut source, "os.fork() or os._exit(0)\nwait()");
    assert_eq!((play.events.len(), source.losses().unwrap()), (3, Losses::default()), "{:#?}", play.events);
}

/// Ten children at once, until the word.
fn crowd(uid: u32) -> String {
    format!(
        r"
os.setuid({uid})
r, w = os.pipe()
for _ in range(10):
    if os.fork() == 0:
        os.close(w); os.read(r, 1); os._exit(0)
os.close(r)
say('there')
go()
os.close(w)
for _ in range(10): wait()
"
    )
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn all_numbers_of_one_range_have_one_share() {
    let mut source = KernelSource::open(&KernelOptions { members: 40, ..options() }).unwrap();
    let mut told = |uid: u32| {
        let mut actor = Actor::wait_for_the_word(&crowd(uid));
        let (id, mut events) = (actor.id, Vec::new());
        assert!(source.members.track(id, Tracking::Member).unwrap().is_followed());
        actor.word();
        actor.told();
        source.drain(|event| events.push(event));
        (actor, forks(&events))
    };
    let (first, second, other) = (told(100_001), told(165_000), told(165_536));
    assert_eq!((first.1, other.1), (10, 10), "who has a range of his own has a share of his own");
    // A share is twenty; the first ten are taken. CPUs that count at the same time may exceed it by one each.
    assert!((8..10).contains(&second.1) || second.1 == 10, "{}", second.1);
    let third = told(130_000);
    assert!(third.1 <= 2, "{} of ten: the range has a share for each number", third.1);
    for (actor, _) in [first, second, other, third] {
        actor.run();
    }
    source.drain(|_| {});
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn what_the_kernel_side_entered_is_forgotten_at_once() {
    let mut source = KernelSource::open(&KernelOptions { members: 40, ..options() }).unwrap();
    let mut actor = Actor::wait_for_the_word(&crowd(64_003));
    let (id, mut events) = (actor.id, Vec::new());
    assert!(source.members.track(id, Tracking::Member).unwrap().is_followed());
    actor.word();
    actor.told();
    source.drain(|event| events.push(event));
    assert_eq!((forks(&events), source.members.room_in_use().unwrap().entries), (10, 11));
    for event in &events {
        source.members.untrack(subject(event).pid).unwrap();
    }
    assert_eq!(source.members.room_in_use().unwrap().entries, 1, "they live, and are forgotten");
    assert!(source.members.has_room_again(64_003));
    actor.run();
    let after = drain_until_exit(&mut source, id);
    assert_eq!(after.len(), 1, "{after:#?}");
    let room = source.members.room_in_use().unwrap();
    assert_eq!((room.entries, room.counted), (0, 0));
}

/// Its many open files keep the parent on its way out, past the point at which its end is told. Then its child becomes a
/// candidate.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_parent_on_its_way_out_is_not_watched_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("orphand-c1");
    symlink(python(), &file).unwrap();
    let candidates = vec![Candidate { comm: "orphand-c1".to_owned(), needs_wire: false }];
    let mut source = KernelSource::open(&KernelOptions { candidates, ..options() }).unwrap();
    let mut met = 0;
    for _ in 0..40 {
        let mut actor = Actor::wait_for_the_word(&format!(
            r#"
import resource
r, w = os.pipe()
os.set_inheritable(w, True)
parent = os.fork()
if parent == 0:
    os.close(r)
    me = os.getpid()
    if os.fork() == 0:
        # PF_EXITING: the last thread of the parent is past the tracepoint in no time.
        while not int(stat(me)[6]) & 4: pass
        os.execv({file:?}, ["python3", "-c", "import os; os.write(" + str(w) + ", str(os.getppid()).encode())"])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for number in range(10, min(most, 200_000)): os.dup2(0, number)
    os._exit(0)
os.close(w)
os.read(r, 20)
say("child", parent=parent)
"#,
            file = file.to_str().unwrap()
        ));
        actor.word();
        let (truth, _) = actor.finish();
        let line = truth.line("child");
        let mut events = Vec::new();
        // The candidate ends.
        drain_until(&mut source, &mut events, |events| {
            events.iter().any(
                |e| matches!(e, ProcessEvent::Exec { process, .. } if !exits(events, *process).is_empty()),
            )
        });
        let under = |e: &ProcessEvent| matches!(e, ProcessEvent::Exec { parent, .. } if Some(u64::from(parent.pid)) == line["parent"].as_u64());
        let room = source.members.room_in_use().unwrap();
        assert_eq!((room.entries, room.counted), (0, 0), "an entry that nobody gives back: {events:#?}");
        if events.iter().any(under) {
            met += 1;
            assert!(events.iter().any(|e| matches!(e, ProcessEvent::Exit { process, .. } if Some(u64::from(process.pid)) == line["parent"].as_u64())), "and its end is told");
        }
        if met == 3 {
            return;
        }
    }
    panic!("{met} of 40 were met");
}

//! The filter before the map of members: numbers that share a slot, numbers that are used again, and its count at rest.

use orphand::{
    host::identity::{Presence, presence},
    source::{kernel::KernelSource, members::Tracked},
};
use orphand_core::model::{ExitStatus, ProcessEvent, ProcessId, Tracking};

use crate::stage::{Actor, drain_until, drain_until_exit, exits, options, subject};

/// Slots of the filter: numbers that differ by this share one.
const SLOTS: u32 = 1 << 14;

/// `held(pid)` makes a child, with this number if one is given; None where that number is taken. The child waits for
/// `end(child)`, forks once, and ends.
const HELD: &str = r#"
def fork_as(pid):
    wanted = ctypes.c_int(pid)
    args = (ctypes.c_uint64 * 10)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(wanted), 1)
    return libc.syscall(435, args, 80)  # clone3
def held(number=None):
    r, w = os.pipe()
    pid = os.fork() if number is None else fork_as(number)
    if pid == 0:
        os.read(r, 1); os.fork() or os._exit(0); wait(); os._exit(7)
    return (pid, w) if pid > 0 else None
def end(child):
    os.write(child[1], b"x"); os.waitpid(child[0], 0)
def tell(child):
    os.write(1, (json.dumps(dict(pid=child[0], start=start(child[0]))) + "\n").encode())
def pair(slots):
    while True:
        one = held()
        for number in (one[0] + slots, one[0] - slots):
            two = held(number) if number > 300 else None
            if two: return one, two
        end(one)
"#;

fn script(text: &str) -> String {
    format!("{HELD}\n{}", text.replace("SLOTS", &SLOTS.to_string()))
}

/// That a held child, once it was let go, was seen to fork once and to end, and its child likewise.
#[track_caller]
fn assert_seen(events: &[ProcessEvent], child: ProcessId) {
    let born: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            ProcessEvent::Fork { creator, child: born, .. } if *creator == child => Some(*born),
            _ => None,
        })
        .collect();
    assert_eq!(born.len(), 1, "forks of {child} in {events:#?}");
    assert_eq!(exits(events, born[0]), [ExitStatus::Code(0)]);
    assert_eq!(exits(events, child), [ExitStatus::Code(7)]);
}

#[track_caller]
fn assert_exact(source: &KernelSource, entries: u64) {
    let room = source.members.room_in_use().unwrap();
    assert_eq!((room.entries, room.counted), (entries, entries));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn entered_by_the_kernel_side_two_numbers_share_a_slot() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut root = Actor::wait_for_the_word(&script(
        "one, two = pair(SLOTS)\ntell(one); tell(two)\ngo(); end(two)\ngo(); end(one)",
    ));
    let id = root.id;
    assert!(source.members.track(id, Tracking::Member).unwrap().is_followed());
    root.word();
    let (one, two) = (root.told(), root.told());
    assert_eq!(one.pid.abs_diff(two.pid), SLOTS);
    let mut events = Vec::new();
    // The second one takes nothing of the first one's with it.
    root.word();
    drain_until(&mut source, &mut events, |events| !exits(events, two).is_empty());
    assert_seen(&events, two);
    assert_exact(&source, 2);
    root.word();
    root.finish();
    events.extend(drain_until_exit(&mut source, id));
    assert_seen(&events, one);
    assert_exact(&source, 0);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn entered_by_user_space_two_numbers_share_a_slot() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut stranger = Actor::wait_for_the_word(&script(
        "one, two = pair(SLOTS)\ntell(one); tell(two)\ngo(); end(two)\ngo(); end(one)",
    ));
    stranger.word();
    let (one, two) = (stranger.told(), stranger.told());
    for child in [one, two] {
        assert!(source.members.track(child, Tracking::Agent).unwrap().is_followed());
        assert!(
            source.members.track(child, Tracking::Member).unwrap().is_followed(),
            "changed, not counted twice"
        );
    }
    assert_exact(&source, 2);
    // Forgotten by user space: a stranger in a slot that is in use.
    source.members.untrack(two.pid).unwrap();
    source.members.untrack(two.pid).unwrap();
    assert_exact(&source, 1);
    stranger.word();
    stranger.word();
    stranger.finish();
    let events = drain_until_exit(&mut source, one);
    assert_seen(&events, one);
    assert!(!events.iter().any(|event| subject(event) == two), "{events:#?}");
    assert_exact(&source, 0);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_number_that_is_used_again_is_another_process() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut stranger = Actor::wait_for_the_word(&script(
        "
one = held()
tell(one); go(); end(one)
for _ in range(2):
    time.sleep(0.02)   # two births in the same hundredth of a second are one birth to /proc
    while not (again := held(one[0])): time.sleep(0.01)   # some other process of the host has it for a moment
    tell(again); go(); end(again)
",
    ));
    stranger.word();
    let mut events = Vec::new();
    let followed = [true, false, true].map(|follow| {
        let child = stranger.told();
        if follow {
            assert!(source.members.track(child, Tracking::Member).unwrap().is_followed());
        }
        stranger.word();
        child
    });
    stranger.finish();
    source.drain(|event| events.push(event));
    let [first, second, third] = followed;
    assert!(first.pid == second.pid && second.pid == third.pid && first != second && second != third);
    assert_seen(&events, first);
    assert!(!events.iter().any(|event| subject(event) == second), "{events:#?}");
    assert_seen(&events, third);
    assert_exact(&source, 0);
}

/// Both sides count at the same time: the kernel side what is born and ends, user space what it follows and forgets.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn counts_of_both_sides_add_up() {
    let mut source = KernelSource::open(&options()).unwrap();
    let actors: Vec<_> = (0..3)
        .map(|_| Actor::wait_for_the_word("for _ in range(400):\n    os.fork() or os._exit(0)\n    wait()"))
        .collect();
    let roots: Vec<_> = actors.iter().map(|actor| actor.id).collect();
    let (mut events, mut followed) = (Vec::new(), 0);
    let running: Vec<_> = actors.into_iter().map(|actor| std::thread::spawn(move || actor.run())).collect();
    while !running.iter().all(std::thread::JoinHandle::is_finished) {
        for root in &roots {
            source.members.untrack(root.pid).unwrap();
            followed += u32::from(source.members.track(*root, Tracking::Member).unwrap().is_followed());
        }
        source.drain(|event| events.push(event));
    }
    for actor in running {
        actor.join().unwrap();
    }
    source.drain(|event| events.push(event));
    assert!(followed > 3 && !events.is_empty(), "{followed} times, {} events", events.len());
    assert_exact(&source, 0);
}

/// Its many open files keep it on its way out, past the point at which its end is told.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_is_on_its_way_out_is_not_entered_again() {
    let mut source = KernelSource::open(&options()).unwrap();
    let mut met = 0;
    for _ in 0..100 {
        let actor = Actor::wait_for_the_word(
            "
import resource
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for number in range(10, min(most, 200_000)): os.dup2(0, number)
os._exit(0)",
        );
        let id = actor.id;
        assert!(source.members.track(id, Tracking::Member).unwrap().is_followed());
        let running = std::thread::spawn(move || actor.run());
        drain_until_exit(&mut source, id);
        assert_eq!(source.members.track(id, Tracking::Member).unwrap(), Tracked::Gone);
        met += u32::from(presence(id) == Presence::Alive);
        running.join().unwrap();
        assert_exact(&source, 0);
        if met == 3 {
            return;
        }
    }
    panic!("{met} of 100 were met on their way out");
}

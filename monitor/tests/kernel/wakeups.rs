//! When the reader is woken: an edge of epoll is a wake-up, whatever lies in the ring.

use std::time::Duration;

use orphand::source::kernel::{KernelOptions, KernelSource};
use orphand_core::model::Tracking;
use rustix::event::{Timespec, epoll};

use crate::stage::{Actor, options};

struct Sleeper(rustix::fd::OwnedFd);

impl Sleeper {
    fn new(source: &KernelSource) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, source, epoll::EventData::new_u64(1), edge).unwrap();
        Self(epoll)
    }

    fn woken(&self, within: Duration) -> bool {
        let mut events = Vec::with_capacity(4);
        let timeout = Timespec::try_from(within).unwrap();
        epoll::wait(&self.0, rustix::buffer::spare_capacity(&mut events), Some(&timeout)).unwrap();
        !events.is_empty()
    }
}

/// Whether the reader is woken as expected by `script`, played to its end; the wake-up itself comes a little later than the
/// record (an irq work).
fn wakes(expected: bool, options: &KernelOptions, tracking: Tracking, idle: bool, script: &str) -> bool {
    let mut source = KernelSource::open(options).unwrap();
    let actor = Actor::wait_for_the_word(script);
    assert!(source.members.track(actor.id, tracking).unwrap().is_followed());
    let sleeper = Sleeper::new(&source);
    source.set_idle(idle).unwrap();
    actor.run();
    let within = if expected { Duration::from_secs(20) } else { Duration::from_millis(100) };
    sleeper.woken(within) == expected
}

const ONE_CHILD: &str = "os.fork() or os._exit(0)\nwait()";

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn not_by_ordinary_records() {
    assert!(wakes(false, &options(), Tracking::Member, false, ONE_CHILD));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn by_any_record_when_idle() {
    assert!(wakes(true, &options(), Tracking::Member, true, ONE_CHILD));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn by_the_exit_of_an_agent() {
    assert!(wakes(true, &options(), Tracking::Agent, false, ONE_CHILD));
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn by_a_quarter_of_the_ring() {
    let options = KernelOptions { ring_bytes: 16 << 10, ..options() };
    // 96 bytes a child: 30 are below 4 KiB, 60 above.
    let children = |n| format!("for _ in range({n}):\n    os.fork() or os._exit(0)\n    wait()");
    assert!(wakes(false, &options, Tracking::Member, false, &children(30)));
    assert!(wakes(true, &options, Tracking::Member, false, &children(60)));
}

//! Passes over many descriptors, and with what the daemon keeps of its rights.

use std::{
    collections::BTreeSet,
    os::fd::AsRawFd as _,
    time::{Duration, Instant},
};

use orphand::{
    os::capabilities::drop_to,
    source::{
        kernel::{KernelOptions, KernelSource},
        kernel_side::{Beside, OpenEnd},
    },
};
use orphand_core::model::Stdio;
use rustix::thread::{CapabilitySet, capabilities};

use crate::{
    holders::{Look, pipe, writers},
    stage::options,
    stand::Stand,
};

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn many_wanted_in_one_pass_or_in_several() {
    let stand = Stand::new(
        r"
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
pipes = [os.pipe() for _ in range(1000)]
say(pipes=[ino(r) for r, _ in pipes])
",
    );
    let wanted: Vec<_> = stand.numbers("pipes").into_iter().map(Stdio::Pipe).collect();
    let mut look = Look::new(&options());
    let begin = Instant::now();
    let at_once = look.at(&wanted);
    println!("1000 wanted pipes: {:?}", begin.elapsed());
    assert_eq!(at_once.len(), 2000);
    assert!(at_once.iter().all(|end| (end.references, end.readers, end.writers) == (1, 1, 1)));
    assert_eq!(at_once.iter().map(|end| end.file).collect::<BTreeSet<_>>().len(), 2000);
    assert_eq!(look.at(&[]), [], "nothing stayed in the map");
    assert_eq!(look.at(&wanted[..1]).len(), 2);

    let mut narrow = Look::new(&KernelOptions { wanted: 300, ..options() });
    let key = |end: &OpenEnd| (end.process, end.number, end.of.is_wire());
    let sets = [at_once, narrow.at(&wanted)].map(|ends| ends.iter().map(key).collect::<BTreeSet<_>>());
    assert_eq!(sets[0], sets[1]);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn a_host_full_of_descriptors_is_looked_at_in_time() {
    let stand = Stand::new(
        r#"
r, w = os.pipe()
null = os.open("/dev/null", os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
count = 19900
for _ in range(count): os.dup(null)
for _ in range(19): child(lambda: None)
say(pipe=ino(r), w=w, count=count)
"#,
    );
    let mut look = Look::new(&options());
    let mut times = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let ends = look.at(&[pipe(&stand, "pipe")]);
        times.push(begin.elapsed());
        assert_eq!(writers(&ends).len(), 20);
        let writer = ends.iter().find(|end| end.access.write).unwrap();
        assert_eq!((writer.references, writer.writers), (20, 1));
    }
    println!("{} descriptors: {times:?}", 20 * stand.number("count"));
    assert!(*times.iter().min().unwrap() < Duration::from_secs(5), "{times:?}");
    let of = pipe(&stand, "pipe");
    drop(stand);
    // Who was killed has as many descriptors to close.
    let gone = Instant::now();
    while !look.at(&[of]).is_empty() {
        assert!(gone.elapsed() < Duration::from_secs(60), "they are still there");
    }
    let begin = Instant::now();
    assert_eq!(look.at(&[of]), []);
    println!("without them: {:?}", begin.elapsed());
}

/// Capabilities are those of the thread.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn passes_go_on_with_what_the_daemon_keeps() {
    let (read, _write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let inode = rustix::fs::fstat(&read).unwrap().st_ino;
    let number = u32::try_from(read.as_raw_fd()).unwrap();
    let work = move || {
        let mut source = KernelSource::open(&options()).unwrap();
        let kept = drop_to(CapabilitySet::empty(), || source.works()).unwrap();
        println!("{}", kept.in_words());
        assert!(!capabilities(None).unwrap().effective.contains(CapabilitySet::PERFMON));
        let holders = source.side();
        let ends = holders.pass(&[Stdio::Pipe(inode)], &Beside::default()).unwrap();
        assert!(ends.iter().any(|end| end.access.read && end.number == number), "{ends:#?}");
        drop(source);
        assert_eq!(
            holders.pass(&[Stdio::Pipe(inode)], &Beside::default()).unwrap_err(),
            "the kernel side is gone"
        );
    };
    std::thread::spawn(work).join().unwrap();
}

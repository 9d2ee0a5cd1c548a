//! setsid(2), before and after exec.

use orphand::source::kernel::{KernelOptions, KernelSource};
use orphand_core::model::{ProcessEvent, SetsidHook};

use crate::stage::{Play, fork_of, options, play_on};

const SCRIPT: &str = r#"
if os.fork() == 0:
    say("before"); os.setsid(); say("leader")
    try: os.setsid()
    except PermissionError: say("refused")
    if os.fork() == 0:
        say("below"); os._exit(0)
    wait(); os._exit(0)
wait()
"#;

fn setsids(play: &Play) -> Vec<(orphand_core::model::ProcessId, u32)> {
    let one = |e: &ProcessEvent| match e {
        ProcessEvent::Setsid { process, sid, .. } => Some((*process, *sid)),
        _ => None,
    };
    play.events.iter().filter_map(one).collect()
}

fn check(hook: SetsidHook) {
    let mut source = KernelSource::open(&KernelOptions { setsid: hook, ..options() }).unwrap();
    let play = play_on(&mut source, SCRIPT);
    let leader = play.truth.id("leader");
    play.truth.line("refused");
    // Once: the second call was refused.
    assert_eq!(setsids(&play), [(leader, leader.pid)]);
    assert_eq!(fork_of(&play.events, play.truth.id("below")).2, leader.pid);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn seen_by_whatever_hook_there_is() {
    check(SetsidHook::Auto);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn seen_by_the_tracepoint() {
    check(SetsidHook::Tracepoint);
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn without_a_hook_the_fork_below_tells() {
    let mut source = KernelSource::open(&options()).unwrap();
    assert!(!source.hooks().iter().any(|hook| hook.contains("setsid")));
    let play = play_on(&mut source, SCRIPT);
    let leader = play.truth.id("leader");
    assert_eq!(setsids(&play), []);
    assert_ne!(fork_of(&play.events, leader).2, leader.pid);
    assert_eq!(fork_of(&play.events, play.truth.id("below")).2, leader.pid);
}

/// The kernel counts what a program did not see because it was running already on that CPU: whoever asks finds the number of
/// each program under this name.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn what_a_program_missed_is_told_by_the_kernel() {
    let source = KernelSource::open(&options()).unwrap();
    let told = std::fs::read_dir("/proc/self/fdinfo").unwrap().filter_map(|entry| {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        text.lines().any(|line| line == "recursion_misses:\t0").then_some(())
    });
    assert!(told.count() >= 6, "three programs, each held twice");
    drop(source);
}

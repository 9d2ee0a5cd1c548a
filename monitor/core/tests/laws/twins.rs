//! The tests of the tests: each law is broken on purpose, by an engine or a shell that is wrong in one way, and
//! the checker must say so; unbroken, the same story must pass.

use std::time::Duration;

use std::collections::VecDeque;

use orphand_core::{
    engine::Engine,
    model::{
        Answer, BootTime, Effect, Input, Notice, Policy, ProcessEvent, ProcessId, Signal,
        scene::{End, Holder},
    },
};

use crate::{
    garbage,
    host::Core,
    kernel::Conduct,
    launch::Launch,
    laws, order, replay,
    world::{AgentKind, World},
};

/// An engine with a defect.
struct Broken {
    engine: Engine,
    /// Changes what goes in, or swallows it.
    hears: fn(Input) -> Option<Input>,
    /// Changes what comes out.
    says: fn(Effect) -> Vec<Effect>,
    out: VecDeque<Effect>,
}

impl Broken {
    fn new(hears: fn(Input) -> Option<Input>, says: fn(Effect) -> Vec<Effect>) -> Box<Self> {
        let engine = Engine::new(policy(), Vec::new()).expect("no rules are rules");
        Box::new(Self { engine, hears, says, out: VecDeque::new() })
    }
}

impl Core for Broken {
    fn handle(&mut self, now: BootTime, input: Input) {
        if let Some(input) = (self.hears)(input) {
            self.engine.handle(now, input);
        }
    }
    fn poll_effect(&mut self) -> Option<Effect> {
        while self.out.is_empty() {
            self.out.extend((self.says)(self.engine.poll_effect()?));
        }
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<BootTime> {
        self.engine.poll_timeout()
    }
    fn orphans(&self) -> u64 {
        Core::orphans(&self.engine)
    }
    fn check(&self) -> Vec<String> {
        crate::invariants::broken(&self.engine)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a hearing that swallows")]
fn all(input: Input) -> Option<Input> {
    Some(input)
}

fn as_is(effect: Effect) -> Vec<Effect> {
    vec![effect]
}

/// An agent with a server of this conduct and one whose wire a broker took over; the agent is killed.
/// Nothing but the owner's exit is a reason here.
fn policy() -> Policy {
    Policy { abandoned_grace: Duration::from_secs(86_400), ..Policy::default() }
}

fn story(core: Option<Box<dyn Core>>, conduct: Conduct) -> World {
    let mut world = World::new(policy(), crate::host::Manners::default(), 400);
    if let Some(core) = core {
        world.host.core = core;
    }
    world.host.start();
    let broker = world.agent(AgentKind::Openclaw, None).expect("a broker");
    world.elapse(1);
    let agent = world.agent(AgentKind::Claude, None).expect("an agent");
    world.server(agent, Launch { conduct, ..Launch::default() }).expect("a server");
    let shared = world.server(agent, Launch::default()).expect("a second server");
    world.elapse(1);
    assert!(world.hand_over(shared, broker));
    world.elapse(1);
    world.kill(agent);
    world.host.settle();
    world
}

fn caught(core: Box<dyn Core>, by: fn(&crate::host::Host) -> Vec<String>) {
    let world = story(Some(core), Conduct::default());
    let violations = by(&world.host);
    assert!(!violations.is_empty(), "nobody noticed\n{}", world.host.log.transcript());
}

fn notice(effect: &Effect) -> Option<&Notice> {
    match effect {
        Effect::Emit { notice, .. } => Some(notice),
        _ => None,
    }
}

/// A signal to every process of the server that a notice shows, after the notice.
fn and_shoot(effect: Effect, when: fn(&Notice) -> bool) -> Vec<Effect> {
    let mut effects = vec![effect];
    let shown =
        notice(&effects[0]).filter(|n| when(n)).and_then(laws::server_of).map(|v| v.processes.clone());
    for p in shown.unwrap_or_default() {
        effects.push(Effect::Signal {
            process: ProcessId::new(p.pid, p.start),
            signal: Signal::Kill,
            uid: None,
        });
    }
    effects
}

fn twice(effect: Effect, when: fn(&Notice) -> bool) -> Vec<Effect> {
    let again = notice(&effect).is_some_and(when).then(|| effect.clone());
    [Some(effect), again].into_iter().flatten().collect()
}

fn never(effect: Effect, when: fn(&Notice) -> bool) -> Vec<Effect> {
    if notice(&effect).is_some_and(when) { Vec::new() } else { vec![effect] }
}

#[test]
fn the_unbroken_engine_passes_every_check() {
    let world = story(Some(Broken::new(all, as_is)), Conduct::default());
    assert_eq!(laws::violations(&world.host), Vec::<String>::new(), "{}", world.host.log.transcript());
    assert!(!world.host.log.shots.is_empty());
}

#[test]
fn who_shoots_at_live_servers_is_caught() {
    let says = |e| and_shoot(e, |n| matches!(n, Notice::ServerStarted { .. }));
    caught(Broken::new(all, says), laws::shots);
}

#[test]
fn who_does_not_wait_for_the_grace_is_caught() {
    let says = |e| and_shoot(e, |n| matches!(n, Notice::OrphanSuspected { .. }));
    caught(Broken::new(all, says), laws::shots);
}

#[test]
fn who_shoots_at_a_server_in_use_is_caught() {
    // It takes every wire for hung up: the broker's server is ended under its hands.
    let hears = |input| match input {
        Input::Answered { token, answer: Answer::Server { mut facts } } => {
            let own: Vec<ProcessId> =
                facts.scene.processes.iter().filter(|row| row.full).map(|row| row.process).collect();
            let is_own = |end: &End| matches!(end.holder, Holder::Process(one) if own.contains(&one));
            facts.scene.ends.retain(is_own);
            Some(Input::Answered { token, answer: Answer::Server { facts } })
        }
        other => Some(other),
    };
    caught(Broken::new(hears, as_is), laws::shots);
    caught(Broken::new(hears, as_is), laws::verdicts);
}

#[test]
fn who_overlooks_an_opt_out_is_caught() {
    let hears = |input| match input {
        Input::Answered { token, answer: Answer::Server { mut facts } } => {
            facts.scene.processes.iter_mut().for_each(|row| row.opted_out = false);
            Some(Input::Answered { token, answer: Answer::Server { facts } })
        }
        other => Some(other),
    };
    let conduct = Conduct { opted_out: true, ..Conduct::default() };
    let world = story(Some(Broken::new(hears, as_is)), conduct);
    assert!(!laws::shots(&world.host).is_empty());
    let world = story(None, conduct);
    assert_eq!(laws::violations(&world.host), Vec::<String>::new());
}

#[test]
fn who_judges_twice_is_caught() {
    let says = |e| twice(e, |n| matches!(n, Notice::OrphanDetected { .. }));
    caught(Broken::new(all, says), laws::judged_once);
}

#[test]
fn who_keeps_a_verdict_to_himself_is_caught() {
    let says = |e| never(e, |n| matches!(n, Notice::OrphanDetected { .. }));
    caught(Broken::new(all, says), laws::judged_once);
}

#[test]
fn who_never_hears_of_exits_is_caught() {
    let hears = |input| {
        let exit = matches!(&input, Input::Process { event: ProcessEvent::Exit { .. } });
        (!exit).then_some(input)
    };
    caught(Broken::new(hears, as_is), laws::judged_once);
    caught(Broken::new(hears, as_is), order::agents);
}

#[test]
fn who_does_not_end_an_orphan_is_caught() {
    let says = |e| if matches!(e, Effect::Signal { .. }) { Vec::new() } else { vec![e] };
    caught(Broken::new(all, says), laws::ended);
}

#[test]
fn who_does_not_tell_the_end_is_caught() {
    let says = |e| never(e, |n| matches!(n, Notice::OrphanReaped { .. }));
    caught(Broken::new(all, says), laws::ended);
}

#[test]
fn who_judges_without_a_suspicion_is_caught() {
    let says = |e| never(e, |n| matches!(n, Notice::OrphanSuspected { .. }));
    caught(Broken::new(all, says), order::order);
}

#[test]
fn who_starts_an_agent_twice_is_caught() {
    let says = |e| twice(e, |n| matches!(n, Notice::AgentStarted { .. }));
    caught(Broken::new(all, says), order::agents);
}

#[test]
fn a_shell_that_does_not_compare_identities_is_caught() {
    let play = |compares| {
        let mut world = World::running();
        (world.host.manners.treacherous, world.host.manners.compares) = (true, compares);
        let agent = world.agent(AgentKind::Claude, None).expect("an agent");
        world.server(agent, Launch::default()).expect("a server");
        world.elapse(1);
        world.kill(agent);
        world.host.settle();
        assert!(!world.host.log.shots.is_empty());
        laws::shots(&world.host)
    };
    assert!(play(true).is_empty());
    assert!(play(false).iter().any(|v| v.contains("hit")), "a bystander was hit and nobody noticed");
}

#[test]
fn who_is_moved_by_a_second_telling_is_caught() {
    // It takes the second of two equal exits for another event and speaks of it.
    let says = |e| twice(e, |n| matches!(n, Notice::AgentExited { .. }));
    let world = story(None, Conduct::default());
    let twice = replay::feed(&mut *Broken::new(all, says), &world.host.log, 2);
    let once = replay::effects(&world.host.log);
    assert_ne!(replay::visible(&twice), replay::visible(&once));
    let sound = replay::feed(&mut *Broken::new(all, as_is), &world.host.log, 2);
    assert_eq!(replay::visible(&sound), replay::visible(&once));
}

#[test]
fn who_signals_strangers_is_caught_by_garbage() {
    let says = |e| match e {
        Effect::Emit { .. } => {
            vec![Effect::Signal { process: ProcessId::new(77, 7), signal: Signal::Kill, uid: None }]
        }
        other => vec![other],
    };
    let inputs = [(1, Input::Ready { kernel: String::new(), hooks: Vec::new() })];
    assert!(garbage::abuse(&mut *Broken::new(all, says), &inputs, &[]).is_err());
    assert_eq!(garbage::abuse(&mut *Broken::new(all, as_is), &inputs, &[]), Ok(()));
}

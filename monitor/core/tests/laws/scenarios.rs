//! Stories of servers that are left behind: each orphan is found and ended, and each has a twin with the cause
//! removed that stays untouched.

use orphand_core::model::{Evidence, ExitStatus, Guard, Notice, ProcessId, Signal};

use crate::{
    kernel::{Conduct, OnTerm},
    launch::Launch,
    laws, programs,
    programs::Recipe,
    world::{AgentKind, World},
};

/// The words told of a server, oldest first.
pub fn told(world: &World, place: usize) -> Vec<String> {
    let service = &world.host.truth.services[place];
    let all = laws::about(&world.host, service);
    let aside = |n: &&Notice| matches!(n, Notice::ServerDetached { .. } | Notice::ServerDuplicated { .. });
    all.into_iter().filter(|n| !aside(n)).map(laws::name).collect()
}

/// The whole world obeys the laws.
pub fn lawful(world: &World) {
    let violations = laws::violations(&world.host);
    assert!(violations.is_empty(), "{}\n{}", violations.join("\n"), world.host.log.transcript());
}

pub fn reaped(world: &World, place: usize) {
    lawful(world);
    let expected = ["server_started", "orphan_suspected", "orphan_detected []", "orphan_reaped"];
    assert_eq!(told(world, place), expected, "{}", world.host.log.transcript());
    assert!(!world.host.truth.lives(&world.host.kernel, &world.host.truth.services[place]));
}

/// The client of a container is told and stays.
fn kept(world: &World, place: usize) {
    lawful(world);
    let told = told(world, place);
    let expected = ["server_started", "orphan_suspected", "orphan_detected [Container]"];
    assert_eq!(told.get(..3), Some(&expected.map(str::to_owned)[..]), "{told:?}");
    assert!(!told.contains(&"orphan_reaped".to_owned()), "{told:?}");
    assert!(world.host.truth.lives(&world.host.kernel, &world.host.truth.services[place]));
}

/// What was started in this way was ended, or stays where it has to.
fn orphaned(world: &World, place: usize, recipe: Recipe) {
    if recipe == Recipe::Docker { kept(world, place) } else { reaped(world, place) }
}

pub fn untouched(world: &World, place: usize) {
    lawful(world);
    assert_eq!(told(world, place), ["server_started"], "{}", world.host.log.transcript());
    assert!(world.host.log.shots.is_empty());
}

pub fn agent(world: &mut World, kind: AgentKind) -> ProcessId {
    let agent = world.agent(kind, None).expect("room for an agent");
    world.elapse(1);
    agent
}

pub fn server(world: &mut World, owner: ProcessId, launch: Launch) -> usize {
    let place = world.server(owner, launch).expect("room for a server");
    world.elapse(1);
    place
}

pub fn leaf(world: &World, place: usize) -> ProcessId {
    world.host.truth.services[place].leaf()
}

/// An agent of this kind with one server; then `happens`, then everything settles.
fn play(
    kind: AgentKind,
    launch: Launch,
    happens: impl FnOnce(&mut World, ProcessId, usize),
) -> (World, usize) {
    let mut world = World::running();
    let owner = agent(&mut world, kind);
    let place = server(&mut world, owner, launch);
    happens(&mut world, owner, place);
    world.host.settle();
    (world, place)
}

fn dies(world: &mut World, owner: ProcessId, _: usize) {
    world.kill(owner);
}

fn nothing(_: &mut World, _: ProcessId, _: usize) {}

fn with(conduct: Conduct) -> Launch {
    Launch { conduct, ..Launch::default() }
}

#[test]
fn o1_the_host_is_killed_and_the_server_stays() {
    for kind in AgentKind::ALL {
        for recipe in Recipe::ALL {
            for socket in [false, true] {
                let launch = Launch { recipe, socket, ..Launch::default() };
                let (world, place) = play(kind, launch, dies);
                orphaned(&world, place, recipe);
                let (twin, place) = play(kind, launch, nothing);
                untouched(&twin, place);
            }
        }
    }
}

#[test]
fn however_the_agent_ends_its_fourteen_servers_are_orphans_and_nobody_elses() {
    for status in [ExitStatus::Signal(9), ExitStatus::Signal(15), ExitStatus::Signal(11), ExitStatus::Code(1)]
    {
        let mut world = World::running();
        let (mine, other) = (agent(&mut world, AgentKind::Claude), agent(&mut world, AgentKind::Claude));
        let theirs = server(&mut world, other, Launch { recipe: Recipe::Npx, ..Launch::default() });
        let launch = |n: usize| Launch { recipe: Recipe::ALL[n % Recipe::ALL.len()], ..Launch::default() };
        let places: Vec<usize> = (0..14).map(|n| server(&mut world, mine, launch(n))).collect();
        world.exit(mine, status);
        world.host.settle();
        for (n, place) in places.into_iter().enumerate() {
            orphaned(&world, place, Recipe::ALL[n % Recipe::ALL.len()]);
        }
        assert_eq!(told(&world, theirs), ["server_started"]);
    }
}

#[test]
fn the_whole_chain_is_one_server_and_the_leaf_is_asked_first() {
    let (world, place) = play(AgentKind::Claude, Launch { recipe: Recipe::Npx, ..Launch::default() }, dies);
    reaped(&world, place);
    let chain = &world.host.truth.services[place].chain;
    let shown = laws::about(&world.host, &world.host.truth.services[place]);
    let Some(Notice::OrphanDetected { server, evidence, .. }) = shown.get(2) else { panic!("no verdict") };
    let processes: Vec<ProcessId> = server.processes.iter().map(|p| ProcessId::new(p.pid, p.start)).collect();
    assert_eq!(&processes, chain);
    assert!(evidence.contains(&Evidence::OwnerExited) && evidence.contains(&Evidence::StdinHangup));
    assert_eq!(world.host.log.shots[0].meant, leaf(&world, place));
}

#[test]
fn a_server_that_ignores_term_is_killed_after_the_timeout() {
    let stubborn = with(Conduct { on_term: OnTerm::Ignore, ..Conduct::default() });
    for (launch, needed) in [(stubborn, Signal::Kill), (Launch::default(), Signal::Term)] {
        let (world, place) = play(AgentKind::Claude, launch, dies);
        reaped(&world, place);
        let all = laws::about(&world.host, &world.host.truth.services[place]);
        let Some(Notice::OrphanReaped { signal, .. }) = all.last() else { panic!("not reaped") };
        assert_eq!(*signal, Some(needed));
    }
}

#[test]
fn what_forks_while_it_dies_is_ended_with_what_it_forked() {
    for on_term in [OnTerm::ForkAndExit, OnTerm::ForkAndStay] {
        let (world, place) = play(AgentKind::Claude, with(Conduct { on_term, ..Conduct::default() }), dies);
        reaped(&world, place);
        let (twin, place) = play(AgentKind::Claude, with(Conduct { on_term, ..Conduct::default() }), nothing);
        untouched(&twin, place);
    }
}

#[test]
fn who_ends_by_itself_in_its_grace_is_cleared() {
    let after = |ms| with(Conduct { exits_at_eof: Some(ms), ..Conduct::default() });
    let (world, place) = play(AgentKind::Claude, after(5_000), dies);
    lawful(&world);
    assert_eq!(told(&world, place), ["server_started", "orphan_suspected", "orphan_cleared exited"]);
    assert!(world.host.log.shots.is_empty());
    let (twin, place) = play(AgentKind::Claude, after(50_000), dies);
    reaped(&twin, place);
}

#[test]
fn o10_forked_pool_workers_hold_the_wire() {
    let workers = |world: &mut World, owner| {
        for _ in 0..2 {
            world.fork(owner);
        }
        world.elapse(1);
    };
    for (recipe, socket) in [(Recipe::Console, false), (Recipe::Npx, true), (Recipe::Shell, true)] {
        let launch = Launch { recipe, socket, ..Launch::default() };
        let (world, place) = play(AgentKind::Python, launch, |world, owner, _| {
            server(world, owner, launch);
            workers(world, owner);
            world.kill(owner);
        });
        reaped(&world, place);
        let (twin, place) = play(AgentKind::Python, launch, |world, owner, _| workers(world, owner));
        untouched(&twin, place);
    }
}

#[test]
fn a_sibling_keeps_the_write_end_open() {
    let play = |killed: bool| {
        let mut world = World::running();
        let owner = agent(&mut world, AgentKind::Node);
        let first = server(&mut world, owner, Launch { leaky: true, ..Launch::default() });
        let second = server(&mut world, owner, Launch { recipe: Recipe::Npx, ..Launch::default() });
        if killed {
            world.kill(owner);
        }
        world.host.settle();
        (world, first, second)
    };
    let (world, first, second) = play(true);
    reaped(&world, first);
    reaped(&world, second);
    let (twin, first, _) = play(false);
    untouched(&twin, first);
}

#[test]
fn a_browser_goes_with_its_server_unless_it_was_let_go_and_a_users_browser_does_not() {
    let (world, place) = play(AgentKind::Claude, Launch::default(), |world, owner, place| {
        let below = leaf(world, place);
        world.browser(below, true);
        world.browser(below, false);
        world.browser(world.shell, true);
        world.elapse(1);
        world.kill(owner);
    });
    reaped(&world, place);
    let browsers = world.host.kernel.living().filter(|p| p.image == programs::CHROMIUM.image()).count();
    assert_eq!(browsers, 6, "the user's own, and what was let go");
}

#[test]
fn an_orphan_of_a_user_manager_is_adopted_by_it() {
    let (world, place) =
        play(AgentKind::Claude, Launch { setsid: true, ..Launch::default() }, |world, owner, _| {
            let shell = world.shell;
            if let Some(manager) = world.host.kernel.get_mut(shell) {
                manager.subreaper = true;
            }
            world.kill(owner);
        });
    reaped(&world, place);
}

#[test]
fn an_intermediate_that_ends_at_once_is_not_the_owner() {
    let launch = Launch { double_fork: true, ..Launch::default() };
    let (world, place) = play(AgentKind::Claude, launch, dies);
    reaped(&world, place);
    let (twin, place) = play(AgentKind::Claude, launch, nothing);
    lawful(&twin);
    assert!(
        twin.host.log.shots.is_empty()
            && twin.host.truth.lives(&twin.host.kernel, &twin.host.truth.services[place])
    );
}

#[test]
fn runs_are_numbered_and_every_run_answers_for_its_own() {
    let mut world = World::running();
    let mut places = Vec::new();
    for _ in 0..3 {
        let owner = agent(&mut world, AgentKind::Claude);
        places.push(server(&mut world, owner, Launch::default()));
        world.kill(owner);
        world.elapse(30);
    }
    world.host.settle();
    let started = world.host.log.notices().filter_map(|(_, _, n)| match n {
        Notice::AgentStarted { agent, .. } => agent.generation,
        _ => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [1, 2, 3]);
    for place in places {
        reaped(&world, place);
    }
}

#[test]
fn observing_says_all_and_does_nothing() {
    let mut world = World::observing();
    let owner = agent(&mut world, AgentKind::Claude);
    let place = server(&mut world, owner, Launch::default());
    world.kill(owner);
    world.host.settle();
    lawful(&world);
    let words = told(&world, place);
    assert_eq!(words[2..], ["orphan_detected [Observe]", "orphan_spared [Observe]"]);
    assert!(world.host.log.shots.is_empty());
}

#[test]
fn a_refusal_is_told_and_a_blind_daemon_ends_nothing() {
    for blind in [false, true] {
        let mut world = World::running();
        (world.host.manners.refuses, world.host.manners.blind) = (!blind, blind);
        let owner = agent(&mut world, AgentKind::Claude);
        let place = server(&mut world, owner, Launch::default());
        world.kill(owner);
        world.host.settle();
        let words = told(&world, place);
        let last = words.last().map(String::as_str);
        assert_eq!(last, Some(if blind { "orphan_unproven [WireUnknown]" } else { "reap_failed" }));
        assert_eq!(world.host.log.shots.is_empty(), blind);
    }
}

#[test]
fn guards_hold_until_they_go() {
    let opted = Conduct { opted_out: true, ..Conduct::default() };
    let other = Launch { uid: Some(1001), ..Launch::default() };
    let detected =
        |guard: Guard| vec![format!("orphan_detected [{guard:?}]"), format!("orphan_spared [{guard:?}]")];
    let serving = Conduct { serves_clients: true, ..Conduct::default() };
    let cases = [
        (with(opted), detected(Guard::OptedOut)),
        (other, detected(Guard::OtherUid)),
        (with(serving), vec!["orphan_unproven [Clients]".to_owned()]),
    ];
    for (launch, spared) in cases {
        let (world, place) = play(AgentKind::Claude, launch, dies);
        lawful(&world);
        let words = told(&world, place);
        assert_eq!(words[2..], spared);
        let (mut twin, place) = play(AgentKind::Claude, launch, dies);
        let leaf = leaf(&twin, place);
        if let Some(p) = twin.host.kernel.get_mut(leaf) {
            (p.conduct, p.uid) = (Conduct::default(), 1000);
        }
        twin.elapse(3600);
        lawful(&twin);
        assert_eq!(told(&twin, place).last().map(String::as_str), Some("orphan_reaped"));
    }
}

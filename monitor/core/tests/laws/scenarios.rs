//! Stories whose ending is known word by word: what the laws leave open, and what random stories rarely tell. What rows of the
//! judgement table or tests of the engine tell is not told here again.

use orphand_core::model::{Evidence, Notice, ProcessId};

use crate::{
    histories::Growth,
    kernel::{Conduct, OnTerm},
    launch::Launch,
    laws, programs,
    programs::Recipe,
    world::{AgentKind, INIT, World},
};

/// The words told of a server, oldest first.
fn told(world: &World, place: usize) -> Vec<String> {
    let service = &world.host.truth.services[place];
    let all = laws::about(&world.host, service);
    let aside = |n: &&Notice| matches!(n, Notice::ServerDetached { .. } | Notice::ServerDuplicated { .. });
    all.into_iter().filter(|n| !aside(n)).map(laws::name).collect()
}

/// The whole world obeys the laws.
fn lawful(world: &World) {
    let violations = laws::violations(&world.host);
    assert!(violations.is_empty(), "{}\n{}", violations.join("\n"), world.host.log.transcript());
}

fn reaped(world: &World, place: usize) {
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

fn untouched(world: &World, place: usize) {
    lawful(world);
    assert_eq!(told(world, place), ["server_started"], "{}", world.host.log.transcript());
    assert!(world.host.log.shots.is_empty());
}

fn agent(world: &mut World, kind: AgentKind) -> ProcessId {
    let agent = world.agent(kind, None).expect("room for an agent");
    world.elapse(1);
    agent
}

fn server(world: &mut World, owner: ProcessId, launch: Launch) -> usize {
    let place = world.server(owner, launch).expect("room for a server");
    world.elapse(1);
    place
}

fn leaf(world: &World, place: usize) -> ProcessId {
    world.host.truth.services[place].leaf()
}

fn alive(world: &World, id: ProcessId) -> bool {
    world.host.kernel.alive(id)
}

fn npx() -> Launch {
    Launch { recipe: Recipe::Npx, ..Launch::default() }
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
fn the_whole_chain_is_one_server_and_the_leaf_is_asked_first() {
    let (world, place) = play(AgentKind::Claude, npx(), dies);
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
fn a_pool_worker_in_another_session_is_an_heir() {
    let mut world = World::running();
    let launcher = agent(&mut world, AgentKind::Hermes);
    let worker = world.fork(launcher).expect("room for a worker");
    let copy = world.background(launcher, false).expect("room for a copy");
    let place = server(&mut world, copy, Launch::default());
    world.elapse(100);
    untouched(&world, place);
    let end = world.host.kernel.opposite(world.host.truth.services[place].wires[1]).expect("a wire");
    assert!(world.host.kernel.pass(end, worker), "the worker reads what the server answers");
    world.host.truth.services[place].patrons.push(worker);
    world.kill(copy);
    world.host.settle();
    lawful(&world);
    assert!(world.host.log.shots.is_empty());
    world.kill(worker);
    world.host.settle();
    lawful(&world);
    assert!(!world.host.truth.lives(&world.host.kernel, &world.host.truth.services[place]));
}

#[test]
fn what_runs_in_a_multiplexer_is_judged_like_anything_else() {
    let mut world = World::running();
    let tmux = world.sanctuary(world.shell, &programs::TMUX).expect("tmux");
    let shell = world.spawn(tmux, &programs::BASH, Conduct::default()).expect("a shell in it");
    let owner = world.agent(AgentKind::Claude, Some(shell)).expect("an agent in it");
    world.elapse(1);
    let place = server(&mut world, owner, npx());
    untouched(&world, place);
    world.kill(owner);
    world.host.settle();
    reaped(&world, place);
    assert!(alive(&world, tmux) && alive(&world, shell));
}

#[test]
fn what_no_agent_started_is_nobodys() {
    let mut world = World::running();
    let prompt = world.unowned_server(world.shell, None, npx()).expect("one at the prompt");
    let remote =
        world.unowned_server(world.inetd, None, Launch { socket: true, ..npx() }).expect("a remote one");
    let socket =
        world.unowned_server(INIT, None, Launch { socket: true, ..npx() }).expect("an activated one");
    world.elapse(1);
    world.kill(world.shell);
    world.kill(world.inetd);
    world.host.settle();
    lawful(&world);
    for place in [prompt, remote, socket] {
        assert!(alive(&world, leaf(&world, place)));
        assert!(!told(&world, place).iter().any(|w| w.starts_with("orphan")), "{:?}", told(&world, place));
    }
}

#[test]
fn a_lost_exec_in_the_chain_does_not_make_two_servers() {
    for lost in 0..8 {
        let mut world = World::running();
        let owner = agent(&mut world, AgentKind::Claude);
        world.host.kernel.records.faults = (0..8).map(|n| n == lost).collect();
        let place = server(&mut world, owner, npx());
        world.host.kernel.records.faults.clear();
        world.elapse(10);
        world.kill(owner);
        world.host.settle();
        lawful(&world);
        let verdicts = told(&world, place).iter().filter(|w| w.starts_with("orphan_detected")).count();
        assert_eq!(verdicts, 1, "record {lost} was lost\n{}", world.host.log.transcript());
    }
}

#[test]
fn a_child_that_exited_before_its_records_were_read_does_not_hide_what_it_forked() {
    // The leaf ends between the drain and the signal, having forked: the child still belongs to the orphan.
    let mut world = World::running();
    world.host.manners.gone_first = true;
    let owner = agent(&mut world, AgentKind::Claude);
    let conduct = Conduct { on_term: OnTerm::ForkAndExit, ..Conduct::default() };
    let place = server(&mut world, owner, Launch { conduct, ..Launch::default() });
    world.kill(owner);
    world.host.settle();
    reaped(&world, place);
    assert!(laws::orphan(&world.host, &world.host.truth.services[place]));
}

#[test]
fn an_agent_below_a_server_is_seen_after_a_restart() {
    let mut world = World::running();
    let host = agent(&mut world, AgentKind::Python);
    let place = world.server(host, Launch::default()).expect("room for a server");
    let leaf = world.host.truth.services[place].leaf();
    world.grow(leaf, Growth::Agent).expect("room for an agent below a shell");
    world.elapse(1);
    world.host.restart();
    world.elapse(1);
    world.kill(host);
    world.elapse(60);
    let told = told(&world, place);
    assert!(told.contains(&"orphan_spared [LiveAgentBelow]".to_owned()), "{told:?}");
    assert!(world.host.log.shots.is_empty(), "{}", world.host.log.transcript());
}

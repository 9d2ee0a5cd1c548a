//! Stories of servers that somebody uses, of what must survive whatever happens around it, and of a daemon that
//! came late or missed something.

use orphand_core::{
    engine::Settings,
    model::{ExitStatus, Mode, Notice, ProcessId},
};

use crate::{
    histories::Growth,
    host::Manners,
    kernel::Conduct,
    launch::Launch,
    laws, programs,
    programs::Recipe,
    scenarios::{agent, lawful, leaf, reaped, server, told, untouched},
    world::{AgentKind, INIT, World},
};

fn alive(world: &World, id: ProcessId) -> bool {
    world.host.kernel.alive(id)
}

fn npx() -> Launch {
    Launch { recipe: Recipe::Npx, ..Launch::default() }
}

#[test]
fn o2_the_host_closes_the_wire_and_lives() {
    for dies in [false, true] {
        let mut world = World::running();
        let owner = agent(&mut world, AgentKind::Node);
        let place = server(&mut world, owner, npx());
        let chain = world.host.truth.services[place].chain.clone();
        // A chain that breaks while the host has the wires proves nothing.
        if dies {
            world.kill(chain[0]);
            world.kill(chain[1]);
            world.elapse(100);
            untouched(&world, place);
            world.kill(owner);
        } else {
            world.hang_up(place);
            world.elapse(2);
            world.kill(chain[0]);
            world.kill(chain[1]);
        }
        world.host.settle();
        reaped(&world, place);
    }
}

#[test]
fn n4_only_the_wrapper_is_killed() {
    for recipe in [Recipe::Npx, Recipe::Uvx] {
        let mut world = World::running();
        let owner = agent(&mut world, AgentKind::Python);
        let launch = Launch { recipe, moves_wire: recipe == Recipe::Uvx, ..Launch::default() };
        let place = server(&mut world, owner, launch);
        let head = world.host.truth.services[place].head();
        world.kill(head);
        world.elapse(100);
        untouched(&world, place);
        assert!(alive(&world, leaf(&world, place)));
        world.kill(owner);
        world.host.settle();
        reaped(&world, place);
    }
}

#[test]
fn the_launcher_of_an_agent_dies_and_the_inner_one_works_on() {
    for kind in [AgentKind::Codex, AgentKind::Gemini] {
        let mut world = World::running();
        let inner = agent(&mut world, kind);
        let place = server(&mut world, inner, Launch::default());
        let launcher = world.launchers[0];
        world.kill(launcher);
        world.elapse(100);
        untouched(&world, place);
        world.kill(inner);
        world.host.settle();
        reaped(&world, place);
    }
}

#[test]
fn an_agent_that_execs_a_new_version_of_itself_is_the_same_agent() {
    for kind in AgentKind::ALL {
        let mut world = World::running();
        let owner = agent(&mut world, kind);
        let place = server(&mut world, owner, Launch { leaky: true, ..Launch::default() });
        world.exec_itself(owner);
        world.elapse(100);
        untouched(&world, place);
        world.kill(owner);
        world.host.settle();
        reaped(&world, place);
    }
}

#[test]
fn an_agent_that_goes_into_the_background_keeps_its_servers() {
    for kind in AgentKind::ALL {
        for twice in [false, true] {
            let mut world = World::running();
            let launcher = agent(&mut world, kind);
            let before = server(&mut world, launcher, npx());
            let copy = world.background(launcher, twice).expect("room for a copy");
            world.elapse(1);
            let after = server(&mut world, copy, npx());
            world.elapse(100);
            untouched(&world, before);
            untouched(&world, after);
            world.kill(copy);
            world.host.settle();
            reaped(&world, before);
            reaped(&world, after);
        }
    }
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
fn an_older_process_that_was_handed_the_wire_is_the_owner() {
    let mut world = World::running();
    let broker = agent(&mut world, AgentKind::Python);
    let owner = agent(&mut world, AgentKind::Claude);
    let place = server(&mut world, owner, Launch::default());
    assert!(world.hand_over(place, broker));
    world.kill(owner);
    world.elapse(100);
    lawful(&world);
    assert_eq!(told(&world, place), ["server_started", "orphan_suspected", "orphan_cleared owner_found"]);
    world.kill(broker);
    world.host.settle();
    lawful(&world);
    assert_eq!(told(&world, place).last().map(String::as_str), Some("orphan_reaped"));
}

#[test]
fn an_agent_below_a_dead_agent_keeps_its_servers() {
    let mut world = World::running();
    let outer = agent(&mut world, AgentKind::Claude);
    let tool = world.spawn(outer, &programs::TOOL, Conduct::default()).expect("a tool");
    let inner = world.agent(AgentKind::Codex, Some(tool)).expect("an inner agent");
    let place = server(&mut world, inner, npx());
    world.kill(outer);
    world.elapse(100);
    untouched(&world, place);
    world.kill(inner);
    world.host.settle();
    reaped(&world, place);
}

#[test]
fn a_server_with_a_live_agent_below_is_spared() {
    let mut world = World::running();
    let owner = agent(&mut world, AgentKind::Claude);
    let place = server(&mut world, owner, Launch::default());
    let front = leaf(&world, place);
    world.grow(front, Growth::Agent).expect("an agent below");
    let inner = *world.hosts.last().expect("the inner agent");
    world.elapse(1);
    world.kill(owner);
    world.elapse(100);
    lawful(&world);
    assert_eq!(
        told(&world, place)[2..4],
        ["orphan_detected [LiveAgentBelow]", "orphan_spared [LiveAgentBelow]"]
    );
    assert!(world.host.log.shots.is_empty());
    world.kill(inner);
    world.host.settle();
    world.elapse(3600);
    assert!(!alive(&world, front), "the guard has gone\n{}", world.host.log.transcript());
}

#[test]
fn an_agent_below_a_server_owns_its_own_servers() {
    let mut world = World::running();
    let owner = agent(&mut world, AgentKind::Claude);
    let place = server(&mut world, owner, Launch::default());
    let front = leaf(&world, place);
    world.grow(front, Growth::Agent).expect("an agent below");
    let inner = *world.hosts.last().expect("the inner agent");
    let nested = world.host.truth.services.len() - 1;
    world.elapse(1);
    world.kill(inner);
    world.host.settle();
    reaped(&world, nested);
    assert!(alive(&world, front));
}

#[test]
fn multiplexers_and_conmon_survive_whatever_they_were_started_by() {
    for program in [&programs::TMUX, &programs::CONMON] {
        let mut world = World::running();
        let owner = agent(&mut world, AgentKind::Claude);
        let place = server(&mut world, owner, npx());
        let by_server = world.sanctuary(leaf(&world, place), program).expect("one below the server");
        let by_agent = world.sanctuary(owner, program).expect("one below the agent");
        world.elapse(1);
        world.kill(owner);
        world.host.settle();
        lawful(&world);
        assert!(alive(&world, by_server) && alive(&world, by_agent));
        let bashes = world.host.kernel.living().filter(|p| p.image == programs::BASH.image()).count();
        assert_eq!(bashes, 3, "the login shell and one in each");
    }
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
fn the_daemon_and_pid_1_are_never_part_of_an_orphan() {
    let mut world = World::running();
    let owner = agent(&mut world, AgentKind::Claude);
    let place = server(&mut world, owner, Launch::default());
    let daemon = world.host.truth.ourselves[0];
    assert!(alive(&world, daemon) && alive(&world, INIT));
    world.kill(owner);
    world.host.settle();
    reaped(&world, place);
    assert!(world.host.log.shots.iter().all(|s| s.meant != daemon && s.meant.pid != 1));
}

#[test]
fn jobs_of_a_dead_agent_are_not_servers() {
    let mut world = World::running();
    let owner = agent(&mut world, AgentKind::Claude);
    let place = server(&mut world, owner, Launch::default());
    let tool = world.spawn(owner, &programs::TOOL, Conduct::default()).expect("a tool");
    let vite = world.spawn(tool, &programs::VITE, Conduct::default()).expect("a development server");
    world.setsid(vite);
    world.exit(tool, ExitStatus::Code(0));
    world.kill(owner);
    world.host.settle();
    reaped(&world, place);
    assert!(alive(&world, vite));
}

#[test]
fn what_no_agent_started_is_nobodys() {
    let mut world = World::running();
    let prompt = world.unowned_server(world.shell, None, npx()).expect("one at the prompt");
    let remote =
        world.unowned_server(world.sshd, None, Launch { socket: true, ..npx() }).expect("a remote one");
    let socket =
        world.unowned_server(INIT, None, Launch { socket: true, ..npx() }).expect("an activated one");
    world.elapse(1);
    world.kill(world.shell);
    world.kill(world.sshd);
    world.host.settle();
    lawful(&world);
    for place in [prompt, remote, socket] {
        assert!(alive(&world, leaf(&world, place)));
        assert!(!told(&world, place).iter().any(|w| w.starts_with("orphan")), "{:?}", told(&world, place));
    }
}

#[test]
fn a_late_daemon_knows_whose_a_server_is_while_the_owner_lives() {
    for owner_lives in [true, false] {
        for kind in [AgentKind::Claude, AgentKind::Python] {
            let mut world = World::new(Settings::default(), Manners::default(), 400);
            let owner = agent(&mut world, kind);
            let place = server(&mut world, owner, npx());
            if !owner_lives {
                world.kill(owner);
            }
            world.host.start();
            world.elapse(9);
            assert!(alive(&world, leaf(&world, place)), "{}", world.host.log.transcript());
            world.elapse(100);
            if owner_lives {
                assert!(alive(&world, leaf(&world, place)), "{}", world.host.log.transcript());
                world.kill(owner);
            }
            world.host.settle();
            lawful(&world);
            // Nobody holds its wire and it is nobody's child: that is proof enough.
            assert!(!alive(&world, leaf(&world, place)));
        }
    }
}

#[test]
fn a_late_daemon_finds_the_host_of_a_leaf_below_pid_1_by_its_wire() {
    let mut world = World::new(Settings::default(), Manners::default(), 400);
    let owner = agent(&mut world, AgentKind::Python);
    let place =
        server(&mut world, owner, Launch { recipe: Recipe::Uvx, moves_wire: true, ..Launch::default() });
    let head = world.host.truth.services[place].head();
    world.kill(head);
    world.host.start();
    world.elapse(100);
    lawful(&world);
    assert!(alive(&world, leaf(&world, place)));
    assert!(world.host.log.shots.is_empty());
}

#[test]
fn a_shell_found_at_the_other_end_is_not_an_agent() {
    let mut world = World::new(Settings::default(), Manners::default(), 400);
    let place = world.unowned_server(world.shell, None, npx()).expect("one at the prompt");
    world.elapse(1);
    world.host.start();
    world.elapse(1);
    world.kill(world.shell);
    world.host.settle();
    lawful(&world);
    assert!(alive(&world, leaf(&world, place)));
    let agents =
        world.host.log.notices().filter(|(_, _, n)| matches!(n, Notice::AgentStarted { .. })).count();
    assert_eq!(agents, 0);
}

#[test]
fn a_lost_exit_of_the_owner_is_found_by_the_repair() {
    for lost in [true, false] {
        let mut world = World::running();
        let owner = agent(&mut world, AgentKind::Claude);
        let place = server(&mut world, owner, npx());
        world.host.kernel.records.faults = [lost].into();
        world.kill(owner);
        world.host.settle();
        lawful(&world);
        assert!(!alive(&world, leaf(&world, place)), "{}", world.host.log.transcript());
        let repaired = world.host.log.notices().any(|(_, _, n)| matches!(n, Notice::Resynced { .. }));
        assert_eq!(repaired, lost);
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
    let conduct = Conduct { on_term: crate::kernel::OnTerm::ForkAndExit, ..Conduct::default() };
    let place = server(&mut world, owner, Launch { conduct, ..Launch::default() });
    world.kill(owner);
    world.host.settle();
    reaped(&world, place);
    assert_eq!(world.host.settings.mode, Mode::Reap);
    assert!(laws::orphan(&world.host, &world.host.truth.services[place]));
}

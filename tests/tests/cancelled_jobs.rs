//! Parallel jobs of one gateway, each with a published server of its own, cancelled at random moments: the servers of
//! the other jobs are never touched, and those that a cancelled job left are found.
//!
//! `ORPHAND_ROUNDS` says which rounds are played, `FIRST-LAST`. A round is the same whenever it is played.

use std::{collections::BTreeSet, env, ops::RangeInclusive};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{
    Daemon, Event, Identity, Launch, Scene, Sdk,
    jobs::{Count, End, Gateway, job, quiet_round, round, works_for},
    scene, within,
};

const SDKS: [Sdk; 3] = [Sdk::Python1, Sdk::Python2, Sdk::Node];

/// The rounds to play.
fn rounds() -> Result<RangeInclusive<u64>> {
    let Ok(text) = env::var("ORPHAND_ROUNDS") else { return Ok(1..=2) };
    let (first, last) = text.split_once('-').context("ORPHAND_ROUNDS is not FIRST-LAST")?;
    Ok(first.parse()?..=last.parse()?)
}

/// Both graces are shorter than the time that a client waits for its server: the hardest case.
fn hasty(s: &Scene) -> Result<std::rc::Rc<Daemon>> {
    let config = "abandoned_grace = \"500ms\"\n".into();
    s.daemon_with(&Launch { grace: "500ms", config, ..Launch::default() })
}

/// The servers that are still there: each process and the name of its job.
fn left(s: &Scene) -> Vec<(Identity, String)> {
    let job = |one: Identity| one.argv().iter().find_map(|argument| job(argument)).map(|job| (one, job));
    s.members().into_iter().filter_map(job).collect()
}

/// What the daemon did about abandoned servers: found, ended, ended by themselves; and those that were unproven.
fn tally(events: &[Event]) -> String {
    let of = |kind: &'static str| events.iter().filter(move |e| e.kind() == kind);
    let abandoned = |e: &&Event| e.list("evidence").contains(&"abandoned");
    let found: BTreeSet<&str> = of("orphan_detected").filter(abandoned).map(Event::server).collect();
    let count = |kind| of(kind).filter(|e| found.contains(e.server())).count();
    let unproven: BTreeSet<&str> = of("orphan_unproven").map(Event::server).collect();
    let (reaped, exited) = (count("orphan_reaped"), count("orphan_exited"));
    format!(
        "{} found, {reaped} ended, {exited} ended by themselves, {} unproven",
        found.len(),
        unproven.len()
    )
}

/// Plays a round with all gateways at once, and adds it to the counts.
fn play(
    s: &Scene,
    daemon: &Daemon,
    gateways: &mut [Gateway],
    number: u64,
    counts: &mut [Count],
) -> Result<()> {
    for gateway in &mut *gateways {
        gateway.begin(&round(s.folder(), gateway.sdk, number)?)?;
    }
    for gateway in &mut *gateways {
        gateway.settle()?;
    }
    // Whoever is suspect by now is judged while the other jobs go on.
    s.barrier(daemon)?;
    for (gateway, count) in gateways.iter_mut().zip(counts) {
        let reports = gateway.end()?;
        s.mark(daemon)?;
        let events = daemon.events();
        for report in reports.iter().filter(|report| report.end == End::Stay) {
            let known = events.iter().any(|e| e.kind() == "server_started" && works_for(e, &report.name));
            ensure!(known, "the daemon does not know the server of {}", report.name);
        }
        count.add(&reports, &events);
        ensure!(count.wrong.is_empty(), "{:?}: {:#?}", gateway.sdk, count.wrong);
    }
    Ok(())
}

/// Twenty jobs of each SDK at once.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn siblings_of_cancelled_jobs_are_never_touched() -> Result<()> {
    let rounds = rounds()?;
    scene(|s| {
        let daemon = hasty(s)?;
        let mut gateways = SDKS.map(|sdk| Gateway::start(s, sdk)).into_iter().collect::<Result<Vec<_>>>()?;
        let mut counts = SDKS.map(|_| Count::default());
        for number in rounds {
            play(s, &daemon, &mut gateways, number, &mut counts)
                .with_context(|| format!("round {number}"))?;
        }
        let lost = || left(s).into_iter().filter(|(one, _)| !gateways.iter().any(|g| g.holds(*one)));
        // If a task is cancelled in the wrong moment, the SDKs for Python keep the wires of its server for ever.
        within("every server is found that a gateway let go of", || lost().next().is_none().then_some(()))
            .with_context(|| format!("{:?}", lost().collect::<Vec<_>>()))?;
        let events = daemon.events();
        for (sdk, count) in SDKS.iter().zip(&counts) {
            eprintln!("{sdk:?}: {count}");
        }
        let kept: BTreeSet<String> = left(s).into_iter().map(|(_, job)| job).collect();
        eprintln!("abandoned servers: {}; still held by a gateway: {kept:?}", tally(&events));
        Ok(())
    })
}

/// The twin: a server that is ended while its job runs is counted.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_server_that_is_ended_is_noticed() -> Result<()> {
    scene(|s| {
        let mut gateways = SDKS.map(|sdk| Gateway::start(s, sdk)).into_iter().collect::<Result<Vec<_>>>()?;
        let plans = quiet_round(s.folder(), 3)?;
        gateways.iter_mut().try_for_each(|gateway| gateway.begin(&plans))?;
        gateways.iter_mut().try_for_each(Gateway::settle)?;
        for mut gateway in gateways {
            let mut of_first = left(s).into_iter().filter(|(_, job)| job == "job-1");
            let (server, _) = of_first.find(|(one, _)| gateway.started(*one)).context("no server")?;
            server.signal(Signal::TERM)?;
            server.wait_gone()?;
            let mut count = Count::default();
            count.add(&gateway.end()?, &[]);
            let [wrong] = &*count.wrong else { anyhow::bail!("{:?}: {:?}", gateway.sdk, count.wrong) };
            ensure!(wrong.starts_with("job-1: "), "{wrong}");
        }
        Ok(())
    })
}

//! What a scrape costs with 600 servers in 64 generations: making the text, and measuring memory.

use std::hint::black_box;

use divan::Bencher;
use orphand::{
    control::measure,
    host::Proc,
    sink::{
        metrics::{Exposition, Metrics},
        wall_clock::WallClock,
    },
};
use orphand_core::model::{
    AgentReport, AgentView, BootTime, Evidence, Guard, ProcessView, Report, RunReport, RunView, ServerReport,
    ServerView, State, Status,
};

const SERVERS: u64 = 600;
const GENERATIONS: u64 = 64;

fn main() {
    divan::main();
}

fn run(generation: u64) -> RunView {
    RunView {
        agent: "gateway".to_owned(),
        generation: Some(generation),
        uid: None,
        unit: Some("gateway.service".to_owned()),
        manager: None,
        invocation_id: Some("8d3f1c5e0f0c4a3b9a5d5f5e5d5c5b5a".to_owned()),
    }
}

fn server(number: u64, process: (u32, u64)) -> ServerReport {
    let generation = 1 + number * GENERATIONS / SERVERS;
    let process = ProcessView {
        pid: process.0,
        start: process.1,
        uid: 0,
        exe: "/usr/bin/node".to_owned(),
        argv: vec!["node".to_owned(), "server.js".to_owned()],
        argv_truncated: false,
        stale_binary: false,
    };
    let orphan = generation < GENERATIONS;
    ServerReport {
        server: ServerView {
            id: format!("{number}@229468"),
            name: "server-filesystem".to_owned(),
            rule: "npm-mcp".to_owned(),
            processes: vec![process],
            rss_bytes: Some(50_000_000),
            run: Some(run(generation)),
            ..ServerView::default()
        },
        evidence: if orphan { vec![Evidence::OwnerExited] } else { Vec::new() },
        guards: if orphan { vec![Guard::Observe] } else { Vec::new() },
        state: if orphan { State::Kept } else { State::Live },
        ..ServerReport::default()
    }
}

/// Servers with this process each. `history` runs before the present ones have nothing left.
fn status(history: u64, process: (u32, u64)) -> Status {
    let agent = AgentView {
        name: "gateway".to_owned(),
        pid: 1,
        start: 1,
        uid: 0,
        generation: Some(GENERATIONS),
        unit: Some("gateway.service".to_owned()),
        invocation_id: None,
        alive: true,
        implied: false,
        hints: orphand_core::model::AgentHints::default(),
    };
    let servers = (0..SERVERS).map(|number| server(number, process)).collect();
    let runs = (1..=GENERATIONS + history)
        .map(|number| RunReport { run: run(number), user: 0, started: BootTime(number), alive: false })
        .collect();
    let agents = vec![AgentReport { left_behind: None, run: None, agent, servers }];
    Status { report: Report { agents, runs, ..Report::default() }, ..Status::default() }
}

#[divan::bench(args = [0, 1_000])]
fn render(bencher: Bencher<'_, '_>, history: u64) {
    let (metrics, status) = (Metrics::new(WallClock::default()), status(history, (1, 1)));
    bencher.bench_local(|| black_box(metrics.render(Some(black_box(&status)), Exposition::OpenMetrics)));
}

/// The resident memory of 600 living processes (of one, 600 times).
#[divan::bench]
fn measure_resident(bencher: Bencher<'_, '_>) {
    let Ok(proc) = Proc::system() else { return };
    let Ok(own) = proc.process(std::process::id()) else { return };
    let mut status = status(0, (own.id().pid, own.id().start));
    bencher.bench_local(|| measure(&proc, status.report.servers_mut().collect(), false));
}

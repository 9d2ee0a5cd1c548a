//! What is in the list: the servers of a report, flat or as a tree, filtered, sorted, folded.

use std::{cmp::Ordering, collections::BTreeSet, time::Duration};

use super::{
    super::{human, table::cell, text},
    Column, Sample,
};
use orphand_core::model::{
    AgentHints, AgentReport, AgentView, BootTime, Mode, NextStep, RunView, ServerReport, State, list,
};

const NOBODY: &str = "-";

#[derive(Clone, Debug)]
pub struct Entry {
    pub report: ServerReport,
    /// Whose it is, as its run is called, without the number.
    pub agent: String,
    pub generation: Option<u64>,
    pub pid: Option<u32>,
    pub age: Option<Duration>,
    pub next: String,
    /// By what a person recognises its agent.
    pub hints: AgentHints,
    /// Whether it is no server, but an agent that was left behind.
    pub is_agent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Agent,
    Generation,
    /// A server: its place among the entries.
    Server(usize),
    /// A process of a server: the place of the server and that of the process.
    Process(usize, usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What stays the same when the list is made again.
    pub key: String,
    pub kind: Kind,
    pub depth: u16,
    /// Whether it can be folded, and is open.
    pub open: Option<bool>,
    pub label: String,
}

#[derive(Clone, Debug, Default)]
pub struct Arrangement {
    pub tree: bool,
    pub sort: Column,
    pub inverted: bool,
    /// What a server has to contain to be shown.
    pub filter: String,
    /// Whether servers whose owner lives are left out.
    pub ownerless: bool,
    /// Whether servers show their processes at first.
    pub unfolded: bool,
    /// The keys that are not as they are at first.
    pub toggled: BTreeSet<String>,
}

impl Arrangement {
    fn shows(&self, entry: &Entry) -> bool {
        entry.contains(&self.filter) && !(self.ownerless && entry.report.state == State::Live)
    }

    /// Whether what is below this key is shown.
    pub fn is_open(&self, key: &str, at_first: bool) -> bool {
        at_first != self.toggled.contains(key)
    }
}

/// The servers of a sample, and the agents that were left behind themselves, unordered.
pub fn entries(sample: &Sample) -> Vec<Entry> {
    let entry = |(owner, one)| entry(owner, one, sample.now, sample.mode);
    let agents = sample.report.left_agents().map(|one| {
        let entry = entry(one);
        let stays = entry.pid.filter(|_| !entry.report.guards.is_empty());
        let next = stays.map_or(entry.next, |pid| format!("stays: kill {pid} ends it"));
        Entry { next, is_agent: true, ..entry }
    });
    sample.report.servers().map(entry).chain(agents).collect()
}

/// The leftovers of a sample, unordered.
pub fn leftover_entries(sample: &Sample) -> Vec<Entry> {
    let heads = sample.report.leftovers();
    heads.map(|(agent, head)| entry(Some(agent), head, sample.now, sample.mode)).collect()
}

fn entry(owner: Option<&AgentView>, report: &ServerReport, now: BootTime, mode: Option<Mode>) -> Entry {
    let run = report.server.run.as_ref();
    let name = owner.map(AgentView::run_name).or_else(|| run.map(RunView::name));
    Entry {
        agent: name.map_or_else(|| NOBODY.to_owned(), |name| text::clean(&name)),
        generation: owner.and_then(|owner| owner.generation).or_else(|| run.and_then(|run| run.generation)),
        pid: report.server.processes.first().map(|process| process.pid),
        age: report.server.age(now),
        next: next(report, mode, now),
        hints: owner.map(|owner| owner.hints.clone()).unwrap_or_default(),
        is_agent: false,
        report: report.clone(),
    }
}

fn next(report: &ServerReport, mode: Option<Mode>, now: BootTime) -> String {
    let due = report.deadline.map(|at| super::short(at.since(now)));
    match report.state {
        State::Suspect => format!("verdict {}", due.as_deref().unwrap_or("soon")),
        State::Ending if mode == Some(Mode::Observe) => "no KILL: orphand observes".to_owned(),
        State::Ending => due.map_or_else(|| "KILL, if needed".to_owned(), |due| format!("KILL {due}")),
        State::Unproven => match report.reached_by.last().and_then(|step| Some((step.pid?, step))) {
            Some((pid, step)) if matches!(step.by.as_str(), "stdin" | "stdout") => format!("held by {pid}"),
            Some((pid, step)) => {
                let program = step.program.as_deref().unwrap_or("pid");
                text::clean(&format!("{program} {pid} {}", step.via))
            }
            None => human::list_doubts(&report.doubts, &report.reached_by),
        },
        State::Live => "-".to_owned(),
        _ if !report.guards.is_empty() => {
            format!("stays: {}", list(&report.guards))
        }
        State::Orphan if report.next == Some(NextStep::GivenUp) => "cannot be ended".to_owned(),
        State::Orphan if mode == Some(Mode::Enforce) => "TERM now".to_owned(),
        State::Orphan => "nobody ends it".to_owned(),
        // Nothing comes next by itself. Its rule is its class.
        State::Leftover => {
            let class = Some(&report.server.rule).filter(|class| *class != "other");
            let what = class.into_iter().chain(&report.holdings.listens).map(|word| text::clean(word));
            let what: Vec<String> = what.collect();
            if what.is_empty() { "stays".to_owned() } else { format!("stays: {}", what.join(" ")) }
        }
        State::Kept => "-".to_owned(),
    }
}

impl Entry {
    pub fn agent(&self) -> String {
        text::numbered(&self.agent, self.generation)
    }

    /// The folder of the project: that of its agent, or else its own.
    pub const fn folder(&self) -> &Option<String> {
        if self.hints.cwd.is_some() { &self.hints.cwd } else { &self.report.server.hints.cwd }
    }

    /// The command line of the process that serves: the last of the launch chain.
    pub fn command(&self) -> String {
        self.report.server.processes.first().map(super::command_line).unwrap_or_default()
    }

    pub fn value(&self, column: Column) -> String {
        let server = &self.report.server;
        match column {
            Column::State => self.report.state.to_string(),
            Column::Server => text::clean(&server.name),
            Column::Agent => self.agent(),
            Column::Pid => cell(self.pid),
            Column::Processes => server.count().to_string(),
            Column::Memory => cell(server.rss_bytes.map(text::size)),
            Column::Cpu => cell(server.cpu_ms.map(super::cpu_time)),
            Column::Age => cell(self.age.map(super::short)),
            Column::Next => self.next.clone(),
        }
    }

    fn contains(&self, filter: &str) -> bool {
        let state = self.report.state;
        let server = &self.report.server;
        let pids: Vec<String> = server.processes.iter().map(|process| process.pid.to_string()).collect();
        let name = server.hints.configured_name.as_deref().unwrap_or_default();
        // Of a unit's run, too, one may look for the agent.
        let agent = server.run.as_ref().map(|run| run.agent.as_str()).unwrap_or_default();
        let whose = format!("{} {agent}", self.agent());
        let all = format!("{} {name} {state} {whose} {} {}", server.name, self.command(), pids.join(" "));
        all.to_lowercase().contains(&filter.to_lowercase())
    }

    fn compare(&self, other: &Self, by: Column) -> Ordering {
        let (a, b) = (&self.report, &other.report);
        let worst = || a.state.cmp(&b.state).then(b.rss_bytes().cmp(&a.rss_bytes()));
        let first = match by {
            Column::State => worst(),
            Column::Server => a.server.name.cmp(&b.server.name),
            Column::Agent => self.agent.cmp(&other.agent).then(other.generation.cmp(&self.generation)),
            Column::Pid => self.pid.cmp(&other.pid),
            Column::Processes => b.server.count().cmp(&a.server.count()),
            Column::Memory => b.rss_bytes().cmp(&a.rss_bytes()),
            Column::Cpu => b.server.cpu_ms.cmp(&a.server.cpu_ms),
            Column::Age => other.age.cmp(&self.age),
            Column::Next => self.next.cmp(&other.next),
        };
        // Equal ones keep their places from one look to the next.
        first.then_with(worst).then_with(|| a.server.id.cmp(&b.server.id))
    }
}

impl Row {
    /// The server that it shows itself.
    pub fn server<'a>(&self, entries: &'a [Entry]) -> Option<&'a Entry> {
        if let Kind::Server(at) = self.kind { entries.get(at) } else { None }
    }

    pub fn value(&self, entries: &[Entry], column: Column) -> String {
        let process = |at: usize, process| entries.get(at)?.report.server.processes.get(process);
        match (self.kind, column) {
            (Kind::Agent | Kind::Generation, Column::Server) => self.label.clone(),
            (Kind::Server(_), _) => self.server(entries).map(|one| one.value(column)).unwrap_or_default(),
            (Kind::Process(at, n), Column::Server) => {
                process(at, n).map(super::command_line).unwrap_or_default()
            }
            (Kind::Process(at, n), Column::Pid) => {
                process(at, n).map(|process| process.pid.to_string()).unwrap_or_default()
            }
            _ => String::new(),
        }
    }
}

/// The lines, in their order; `entries` is put in order, too. A tree of all servers has all of `agents`.
pub fn rows(entries: &mut [Entry], agents: &[AgentReport], how: &Arrangement) -> Vec<Row> {
    entries.sort_by(|a, b| {
        let order = a.compare(b, how.sort);
        if how.inverted { order.reverse() } else { order }
    });
    let shown: Vec<(usize, &Entry)> =
        entries.iter().enumerate().filter(|(_, entry)| how.shows(entry)).collect();
    let mut rows = Vec::new();
    if !how.tree {
        for (at, entry) in shown {
            server(at, entry, 0, how, &mut rows);
        }
        return rows;
    }
    let runs = tree(shown, agents, how);
    let twins =
        |run: &Run<'_>| runs.iter().filter(|one| one.agent == run.agent && one.number == run.number).count();
    let mut seen = BTreeSet::new();
    for agent in runs.iter().map(|run| run.agent.as_str()).filter(|name| seen.insert(*name)) {
        let key = format!("agent {agent}");
        let open = how.is_open(&key, true);
        let of_agent = || runs.iter().filter(|run| run.agent == agent);
        let name = if agent == NOBODY { "without an owner" } else { agent };
        let label = format!("{name}  {}", extent(of_agent().flat_map(|run| &run.servers)));
        rows.push(group(&key, Kind::Agent, open, label));
        for run in of_agent().filter(|_| open) {
            let number = run.number.map_or_else(|| "no run".to_owned(), |number| format!("#{number}"));
            // Another user, or container, may have a run of the same name and number.
            let whose = run.of.filter(|_| twins(run) > 1).map(whose).unwrap_or_default();
            let number = number + &whose;
            let key = format!("{key} {number}");
            let open = how.is_open(&key, true);
            rows.push(group(&key, Kind::Generation, open, run.label(&number)));
            for (at, entry) in run.servers.iter().filter(|_| open) {
                server(*at, entry, 2, how, &mut rows);
            }
        }
    }
    rows
}

#[derive(Default)]
struct Run<'a> {
    agent: String,
    number: Option<u64>,
    /// What it is accounted to, where that is known.
    of: Option<&'a RunView>,
    agents: Vec<&'a AgentView>,
    servers: Vec<(usize, &'a Entry)>,
}

impl Run<'_> {
    /// `#3  pid 1200, bot.service, 2 servers, 300 MB`.
    fn label(&self, number: &str) -> String {
        const MOST: usize = 4;
        let mut facts: Vec<String> = Vec::new();
        for agent in self.agents.iter().take(MOST) {
            facts.push(format!("pid {}{}", agent.pid, if agent.alive { "" } else { " (exited)" }));
            let unit = agent.unit.as_deref().map(text::clean);
            facts.extend(unit.filter(|unit| !facts.contains(unit)));
        }
        facts.extend((self.agents.len() > MOST).then(|| format!("{} more", self.agents.len() - MOST)));
        facts.push(extent(self.servers.iter()));
        format!("{number}  {}", facts.join(", "))
    }
}

/// The runs. An agent comes where its first server would; those without servers come last.
fn tree<'a>(shown: Vec<(usize, &'a Entry)>, agents: &'a [AgentReport], how: &Arrangement) -> Vec<Run<'a>> {
    let mut all: Vec<Run<'a>> = Vec::new();
    let place = |all: &[Run<'a>], agent: &str, number, of: Option<&RunView>| {
        let key = of.map(RunView::key);
        all.iter()
            .position(|run| run.agent == agent && run.number == number && run.of.map(RunView::key) == key)
    };
    for (at, entry) in shown {
        let (agent, number, of) = (&entry.agent, entry.generation, entry.report.server.run.as_ref());
        if let Some(run) = place(&all, agent, number, of).and_then(|at| all.get_mut(at)) {
            run.servers.push((at, entry));
        } else {
            let servers = vec![(at, entry)];
            all.push(Run { agent: agent.clone(), number, of, servers, ..Run::default() });
        }
    }
    for AgentReport { agent: view, run: of, servers, .. } in agents {
        let (agent, number) = (text::clean(&view.run_name()), view.generation);
        let of = of.as_ref();
        let is_meant =
            servers.is_empty() && !how.ownerless && agent.to_lowercase().contains(&how.filter.to_lowercase());
        match place(&all, &agent, number, of).and_then(|at| all.get_mut(at)) {
            Some(run) => run.agents.push(view),
            None if is_meant => all.push(Run { agent, number, of, agents: vec![view], servers: vec![] }),
            None => {}
        }
    }
    all
}

/// ` of uid 1000`, ` of /docker/0a1b` (the manager of a container); nothing of the host's own manager.
fn whose(run: &RunView) -> String {
    let user = run.user().map(|uid| format!("uid {uid}"));
    let whose = user.or_else(|| run.manager.as_deref().map(text::clean));
    whose.map(|whose| format!(" of {whose}")).unwrap_or_default()
}

fn extent<'a>(of: impl Iterator<Item = &'a (usize, &'a Entry)>) -> String {
    let of = of.filter(|(_, entry)| !entry.is_agent);
    let (servers, bytes) = of.fold((0_u64, 0_u64), |(servers, bytes), (_, entry)| {
        (servers + 1, bytes.saturating_add(entry.report.rss_bytes()))
    });
    let count = text::count(servers, "server", "servers");
    if servers == 0 { count } else { format!("{count}, {}", text::size(bytes)) }
}

fn group(key: &str, kind: Kind, open: bool, label: String) -> Row {
    let depth = u16::from(kind == Kind::Generation);
    Row { key: key.to_owned(), kind, depth, open: Some(open), label }
}

fn server(at: usize, entry: &Entry, depth: u16, how: &Arrangement, rows: &mut Vec<Row>) {
    let key = &entry.report.server.id;
    let open = how.is_open(key, how.unfolded);
    let row = |key: String, kind, depth, open| Row { key, kind, depth, open, label: String::new() };
    rows.push(row(key.clone(), Kind::Server(at), depth, Some(open)));
    if open {
        let processes = entry.report.server.processes.iter().enumerate();
        rows.extend(processes.map(|(n, process)| {
            row(format!("{key} {}", process.pid), Kind::Process(at, n), depth + 1, None)
        }));
    }
}

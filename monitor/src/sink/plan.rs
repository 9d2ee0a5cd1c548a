//! The text of `orphand reap`: the plan, and the result.

use serde::Serialize;

use super::{
    human, list,
    paint::{self, Paint},
    table::{self, Users, cell},
    text,
};
use orphand_core::model::{AgentView, Asked, ReapRequest, Report, RunView, ServerReport, State};

const COLUMNS: &str = "SERVER|STATE|AGENT|?>UID|>PID|>PROCESSES|>MEMORY|";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanItem {
    /// The server, the guards that forbid ending it, and why it may be only unproven: then ending it may take it away from
    /// somebody who uses it.
    #[serde(flatten)]
    pub planned: ServerReport,
    /// For a duplicate: for how many milliseconds it has been running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

impl PlanItem {
    pub const fn is_to_end(&self) -> bool {
        self.planned.guards.is_empty()
    }

    pub fn is_leftover(&self) -> bool {
        self.planned.state == State::Leftover
    }

    pub fn is_unproven(&self) -> bool {
        self.planned.is_unproven()
    }
}

pub fn render(planned: &[PlanItem], paint: Paint) -> String {
    let uid = |one: &PlanItem| one.planned.server.processes.first().map(|process| process.uid);
    let users = Users::of(planned.iter().filter_map(uid));
    let rows: Vec<_> = planned.iter().map(|one| row(one, users.cell(uid(one)))).collect();
    format!("{}\n{}\n", table::render(paint, COLUMNS, &rows, None), sum(planned))
}

/// `2 servers to end (197 MB), 1 of them unproven, 1 stays.`
fn sum(planned: &[PlanItem]) -> String {
    let (to_end, stay): (Vec<&PlanItem>, Vec<&PlanItem>) = planned.iter().partition(|one| one.is_to_end());
    let unproven = match to_end.iter().filter(|one| one.is_unproven()).count() {
        0 => String::new(),
        number => format!(", {number} of them unproven"),
    };
    let stays = match stay.len() {
        0 => String::new(),
        1 => ", 1 stays".to_owned(),
        more => format!(", {more} stay"),
    };
    let memory = bytes(&to_end).map(|bytes| format!(" ({})", text::size(bytes))).unwrap_or_default();
    format!("{} to end{memory}{unproven}{stays}.", things(&to_end))
}

/// The result: `2 servers ended, at most 197 MB freed.`, and one line for each server that stays.
pub fn outcome(ended: &[&PlanItem], stayed: &[&PlanItem], paint: Paint) -> String {
    let freed = bytes(ended).map(|bytes| format!(", {}", text::freed(bytes, None))).unwrap_or_default();
    let text = match ended.len() {
        0 => "Nothing was ended.".to_owned(),
        _ => format!("{} ended{freed}.", things(ended)),
    };
    let mut out = paint.text(if stayed.is_empty() { paint::GOOD } else { paint::PLAIN }, text);
    out.push('\n');
    out + &stayed.iter().map(|one| paint.line(paint::WARNING, stays(one))).collect::<String>()
}

/// `files (pid 4711) stays: a rule exempts it`.
pub fn stays(one: &PlanItem) -> String {
    // For servers that were unproven in the plan.
    let doubts =
        || one.is_unproven().then(|| human::list_doubts(&one.planned.doubts, &one.planned.reached_by));
    let there = match one.planned.state {
        State::Ending => "it is being ended still",
        _ => "it is still there",
    };
    let why = guard_reasons(one).or_else(doubts).unwrap_or_else(|| there.to_owned());
    format!("{} (pid {}) stays: {why}", text::sanitise(&one.planned.server.name), pid(one))
}

fn row(one: &PlanItem, uid: String) -> (anstyle::Style, Vec<String>) {
    let server = &one.planned.server;
    let run = server.run.as_ref();
    let agent = cell(run.map(RunView::title));
    let (style, note) = match guard_reasons(one) {
        Some(why) => (paint::PLAIN, format!("stays: {why}")),
        None if one.is_unproven() => {
            (paint::ALARM, human::list_doubts(&one.planned.doubts, &one.planned.reached_by))
        }
        None if one.is_leftover() => (paint::ALARM, leftover(one)),
        None => (paint::ALARM, duplicate(one).unwrap_or_default()),
    };
    let note = [note, blocks(one)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    let cells = vec![
        text::clean(&server.name),
        one.planned.state.to_string(),
        agent,
        uid,
        pid(one),
        server.count().to_string(),
        cell(server.rss_bytes.map(text::size)),
        note,
    ];
    (style, cells)
}

fn pid(one: &PlanItem) -> String {
    cell(one.planned.server.processes.first().map(|process| process.pid))
}

/// `running for 3 h, duplicate of pid 1234, which is newer and stays`.
fn duplicate(one: &PlanItem) -> Option<String> {
    let newest = human::pid_of(one.planned.duplicate_of.as_ref()?);
    let age = one.age_ms.map(|age| format!("running for {}, ", text::millis(age)));
    Some(format!("{}duplicate of {newest}, which is newer and stays", age.unwrap_or_default()))
}

/// `shell, running for 3 h: bash -c 'npm run dev'`.
fn leftover(one: &PlanItem) -> String {
    let age = one.age_ms.map(text::millis);
    let age = age.map(|age| format!(", running for {age}")).unwrap_or_default();
    let command = one.planned.server.processes.first().map(list::command_line).unwrap_or_default();
    format!("{}{age}: {command}", text::sanitise(&one.planned.server.rule))
}

/// `listens on 127.0.0.1:3000; holds /srv/x.lock`.
fn blocks(one: &PlanItem) -> String {
    human::holdings(&one.planned.holdings, ["listens on ", "holds "]).join("; ")
}

fn guard_reasons(one: &PlanItem) -> Option<String> {
    (!one.is_to_end()).then(|| human::guards_of(&one.planned.server, &one.planned.guards))
}

/// `2 servers`, `1 leftover`.
pub fn things(items: &[&PlanItem]) -> String {
    let (one, many) = if items.iter().any(|one| one.is_leftover()) {
        ("leftover", "leftovers")
    } else {
        ("server", "servers")
    };
    text::count(items.len() as u64, one, many)
}

/// The memory of these, if that of each is known.
fn bytes(planned: &[&PlanItem]) -> Option<u64> {
    planned.iter().try_fold(0_u64, |sum, one| Some(sum.saturating_add(one.planned.server.rss_bytes?)))
}

/// A line for each target that selects nothing; without targets, one for the whole request.
pub fn nothing(request: &ReapRequest, planned: &[PlanItem], report: &Report) -> Vec<String> {
    if request.leftovers {
        let is_meant = |target: &&Asked| {
            planned.iter().any(|one| one.planned.is_meant_by(target))
                || planned.iter().any(|one| one.planned.server.hidden() > 0)
        };
        let missed = request.targets.iter().filter(|target| !is_meant(target));
        let why = |target: &Asked| match find(report, target) {
            Some((_, server)) => format!(
                "{} ({target}) is a server, {}, and no leftover: leave out --leftovers",
                text::sanitise(&server.server.name),
                server.state
            ),
            None => format!("{target} is no leftover that orphand knows"),
        };
        let missed: Vec<String> = missed.map(why).collect();
        let none = missed.is_empty() && planned.is_empty();
        return if none { vec!["no leftovers".to_owned()] } else { missed };
    }
    let missed = |target: &&Asked| {
        // Not all processes of a large server are listed: where one was selected, it may be that.
        let is_meant = |one: &PlanItem| match find(report, target) {
            Some((_, server)) => server.server.id == one.planned.server.id,
            None => one.planned.server.hidden() > 0,
        };
        !planned.iter().any(|one| one.planned.is_meant_by(target) || is_meant(one))
    };
    let mut missed: Vec<String> =
        request.targets.iter().filter(missed).map(|target| of_process(target, request, report)).collect();
    if missed.is_empty() && planned.is_empty() {
        missed.push(match &request.agent {
            Some(name) => of_agent(name, request, report),
            None => of_host(request, report),
        });
    }
    missed
}

fn of_process(target: &Asked, request: &ReapRequest, report: &Report) -> String {
    let Some((owner, server)) = find(report, target) else {
        if report.leftovers().any(|(_, head)| head.is_meant_by(target)) {
            return format!("{target} is a leftover, not an orphan: --leftovers ends it");
        }
        let agent = report.agents.iter().map(|one| &one.agent);
        let mut agent = agent.filter(|one| target.is(one.id()) || target.names(&one.name));
        return agent.next().map_or_else(
            || format!("{target} is no part of an MCP server that orphand knows"),
            |agent| format!("{target} is the agent {}, and only servers are ended", human::agent_name(agent)),
        );
    };
    let name = format!("{} ({target})", text::sanitise(&server.server.name));
    if server.is_unproven() && !request.include_unproven && !request.duplicates {
        let why = human::list_doubts(&server.doubts, &server.reached_by);
        return format!("{name} is unproven: {why}; --include-unproven ends it all the same");
    }
    if request.duplicates || request.include_active || server.is_orphan() || server.is_unproven() {
        return format!("{name} is {}, and the other flags exclude it", server.state);
    }
    let why = match (server.state, owner) {
        (State::Suspect, _) => "its grace is not over".to_owned(),
        (_, Some(owner)) if owner.alive => format!("its owner {} is alive", human::agent_name(owner)),
        _ => "it is no orphan".to_owned(),
    };
    format!("{name} is {}: {why}; --include-active ends it all the same", server.state)
}

fn find<'a>(report: &'a Report, target: &Asked) -> Option<(Option<&'a AgentView>, &'a ServerReport)> {
    report.servers().find(|(_, server)| server.is_meant_by(target))
}

fn of_agent(name: &str, request: &ReapRequest, report: &Report) -> String {
    let known = report.agents.iter().any(|one| one.agent.is_called(name))
        || report.runs.iter().any(|one| one.run.is_called(name))
        || report.servers().any(|(_, one)| one.belongs_to(Some(name)));
    let shown = text::sanitise(name);
    if !known {
        return format!("no agent or unit called \"{shown}\" is there; `orphand ps` shows all");
    }
    let number = request.generation.map_or_else(String::new, |number| format!(" #{number}"));
    format!("{shown}{number} has {}", none(request))
}

fn of_host(request: &ReapRequest, report: &Report) -> String {
    let which = request.generation.map_or_else(String::new, |number| format!(" of a run #{number}"));
    let unproven = report.totals().unproven;
    let unproven = match unproven {
        0 => String::new(),
        _ if request.duplicates || request.include_unproven || request.generation.is_some() => String::new(),
        number => format!("; {number} unproven (--include-unproven selects them)"),
    };
    let leftovers = match report.totals().leftovers {
        0 => String::new(),
        _ if request.duplicates || request.generation.is_some() => String::new(),
        number => format!("; {} (--leftovers)", text::count(number, "leftover", "leftovers")),
    };
    format!("{}{which}{unproven}{leftovers}", none(request))
}

const fn none(request: &ReapRequest) -> &'static str {
    match request {
        ReapRequest { duplicates: true, .. } => "no duplicates",
        ReapRequest { include_active: true, .. } => "no servers",
        ReapRequest { include_unproven: true, .. } => "no orphans and no unproven servers",
        _ => "no orphans",
    }
}

#[cfg(test)]
mod tests;

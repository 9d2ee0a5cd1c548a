//! `orphand reap`: one explicit clean-up. It shows what it would end, asks, ends exactly what was shown, waits, and reports.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, IsTerminal, Write},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::json;

use crate::{
    cli::{self, ExitCode},
    commands::offline::Offline,
    control::client::{Client, ClientError},
    os::clock,
    sink::{
        list,
        plan::{self, PlanItem},
    },
};
use orphand_core::model::{ReapRequest, Report, ServerReport, State, text};

/// Between two questions to the daemon about what is left.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How long it may take to end servers beyond the term timeout: the inspections before, the rounds of SIGKILL after.
const MARGIN: Duration = Duration::from_secs(8);

/// What can end servers: the running daemon, or an engine in this process.
trait Backend {
    /// All agents and servers; it says why the unproven ones are unproven.
    fn report(&mut self) -> anyhow::Result<Report>;
    /// Ends them, waits until each has ended or stays, and returns what is there then.
    fn reap(&mut self, request: &ReapRequest) -> anyhow::Result<Report>;
}

pub fn reap(flags: &cli::Reap) -> anyhow::Result<ExitCode> {
    let mut client = super::daemon(&flags.places);
    let request = ReapRequest {
        agent: flags.agent.clone(),
        generation: flags.generation,
        targets: flags.targets.clone(),
        servers: None,
        include_active: flags.include_active,
        include_unproven: flags.include_unproven,
        duplicates: flags.duplicates,
        leftovers: flags.leftovers,
    };
    match client.plan(request.clone()) {
        Ok(planned) => clean_up(flags, &mut client, &request, planned),
        Err(ClientError::NoDaemon { path, .. }) if flags.leftovers => {
            bail!(
                "cannot find leftovers: no daemon answers at {}, and only one that saw an agent end knows what it left; \
                 start one with `orphand run`",
                path.display()
            )
        }
        Err(ClientError::NoDaemon { path, .. }) => {
            let note = "from the evidence in /proc alone";
            super::tell_aside(&format!("orphand: no daemon answers at {}: {note}", path.display()));
            let mut alone = Offline::inspect(&flags.places)?;
            let planned = alone.plan(&request);
            clean_up(flags, &mut alone, &request, planned)
        }
        Err(error) => Err(error.into()),
    }
}

fn clean_up(
    flags: &cli::Reap,
    backend: &mut dyn Backend,
    request: &ReapRequest,
    planned: Vec<ServerReport>,
) -> anyhow::Result<ExitCode> {
    let planned: Vec<PlanItem> = planned.into_iter().map(item).collect();
    let (to_end, guarded): (Vec<&PlanItem>, Vec<&PlanItem>) = planned.iter().partition(|one| one.is_to_end());
    let done = tell_missed(request, &planned, backend, flags.json)?;
    if !flags.json && !planned.is_empty() {
        super::print(&plan::render(&planned, super::paint()))?;
    }
    if flags.dry_run || to_end.is_empty() {
        if flags.json {
            let told = json!({ "planned": planned, "ended": [], "stayed": guarded });
            super::answer(true, &told, |_| String::new())?;
        }
        return Ok(if flags.dry_run { done } else { code(&guarded, done) });
    }
    require_one_run(request, &to_end)?;
    if !flags.yes && !confirmed(&to_end)? {
        return super::print("Nothing was ended.\n");
    }
    let left = backend.reap(&exactly(&to_end, request))?;
    let is_left = |one: &&&PlanItem| find(&left, &one.planned.server.id).is_some();
    let (stayed, ended): (Vec<&PlanItem>, Vec<&PlanItem>) = to_end.iter().partition(|one| is_left(one));
    // A guard may have been found at the last moment: then it is shown.
    let stayed: Vec<PlanItem> = stayed.into_iter().map(|one| as_it_is_now(one, &left)).collect();
    let stayed: Vec<&PlanItem> = stayed.iter().chain(guarded).collect();
    let ids: Vec<&str> = ended.iter().map(|one| one.planned.server.id.as_str()).collect();
    super::answer(flags.json, &json!({ "planned": planned, "ended": ids, "stayed": stayed }), |_| {
        plan::outcome(&ended, &stayed, super::paint())
    })?;
    Ok(code(&stayed, done))
}

/// A number selects one run. Users, and containers, may each have one of this name and number.
fn require_one_run(request: &ReapRequest, to_end: &[&PlanItem]) -> anyhow::Result<()> {
    let runs = to_end.iter().filter_map(|one| one.planned.server.run.as_ref());
    let runs: BTreeSet<_> = runs.map(|run| (run.title(), run.key())).collect();
    let twins = runs.iter().zip(runs.iter().skip(1)).find(|((one, _), (next, _))| one == next);
    match twins {
        Some(((title, _), _)) if request.generation.is_some() => bail!(
            "several runs are called {}, of several users or containers: name the processes to end instead",
            text::sanitise(title)
        ),
        _ => Ok(()),
    }
}

/// Where something stays that was to be ended: says so, and why the first one does.
fn code(stayed: &[&PlanItem], done: ExitCode) -> ExitCode {
    let Some(first) = stayed.first() else { return done };
    let more = if stayed.len() > 1 { format!(", and {} more", stayed.len() - 1) } else { String::new() };
    let stays = plan::stays(first);
    super::tell_aside(&format!("orphand: {stays}{more}; `orphand explain` says what would change that"));
    ExitCode::Failed
}

/// Says which targets, agent or run select nothing, and returns the status that this means. That there are no orphans is none.
fn tell_missed(
    request: &ReapRequest,
    planned: &[PlanItem],
    backend: &mut dyn Backend,
    json: bool,
) -> anyhow::Result<ExitCode> {
    if request.targets.is_empty() && !planned.is_empty() {
        return Ok(ExitCode::Done);
    }
    let report = backend.report()?;
    let missed = plan::nothing(request, planned, &report);
    if !request.targets.is_empty() || request.agent.is_some() || request.generation.is_some() {
        return Ok(missed.iter().fold(ExitCode::Done, |_, what| super::unmatched(what)));
    }
    if !json {
        let unseen = list::unseen(&report, super::paint());
        super::print(&format!("Nothing to end: {}.\n{unseen}", missed.join("; ")))?;
    }
    Ok(ExitCode::Done)
}

fn find<'a>(report: &'a Report, id: &str) -> Option<&'a ServerReport> {
    let servers = report.servers().map(|(_, server)| server);
    let leftovers = report.leftovers().map(|(_, head)| head);
    servers.chain(leftovers).find(|server| server.server.id == id)
}

/// What stays, as it was shown, with the verdict of now.
fn as_it_is_now(one: &PlanItem, left: &Report) -> PlanItem {
    let ServerReport { server, state, duplicate_of, holdings, .. } = one.planned.clone();
    let gone = || ServerReport { state, ..ServerReport::default() };
    let now = find(left, &server.id).cloned().unwrap_or_else(gone);
    PlanItem { planned: ServerReport { server, duplicate_of, holdings, ..now }, age_ms: one.age_ms }
}

/// What is shown of a server; of a duplicate and a leftover also for how long it has been running.
fn item(planned: ServerReport) -> PlanItem {
    let is_old = planned.is_duplicate() || planned.state == State::Leftover;
    let age = planned.server.age(clock::now()).filter(|_| is_old);
    PlanItem { age_ms: age.and_then(|age| u64::try_from(age.as_millis()).ok()), planned }
}

/// A request for what was shown and nothing else. What has become unproven since stays, unless such were asked for.
fn exactly(to_end: &[&PlanItem], request: &ReapRequest) -> ReapRequest {
    ReapRequest {
        servers: Some(to_end.iter().map(|one| one.planned.server.id.clone()).collect()),
        include_active: request.include_active,
        duplicates: request.duplicates,
        leftovers: request.leftovers,
        include_unproven: request.include_unproven,
        ..ReapRequest::default()
    }
}

fn confirmed(to_end: &[&PlanItem]) -> anyhow::Result<bool> {
    let count = |is: fn(&PlanItem) -> bool| to_end.iter().filter(|one| is(one)).count();
    let mut what = plan::things(to_end);
    if count(|one| one.planned.duplicate_of.is_some()) > 0 {
        what += " of living agents, whose threads may be using them";
    }
    for (number, told) in [
        (
            count(|one| one.planned.state == State::Live && !one.planned.is_duplicate()),
            "belong to living agents",
        ),
        (count(PlanItem::is_unproven), "somebody may still use"),
    ] {
        if number > 0 {
            what = format!("{what}, {number} of which {told}");
        }
    }
    if !io::stdin().is_terminal() {
        bail!(
            "refused to end without a question: {what}; there is no terminal to ask on: add --yes, or --dry-run"
        );
    }
    let mut out = io::stdout();
    write!(out, "End {what}? [y/N] ").and_then(|()| out.flush()).context("cannot ask on the terminal")?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the answer from the terminal")?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

impl Backend for Client {
    fn report(&mut self) -> anyhow::Result<Report> {
        let mut status = self.status(false)?;
        status.report.blind.append(&mut status.blind);
        Ok(status.report)
    }

    fn reap(&mut self, request: &ReapRequest) -> anyhow::Result<Report> {
        Client::reap(self, request.clone())?;
        let began = Instant::now();
        loop {
            let status = self.status(false)?;
            let patience = Duration::from_millis(status.term_timeout_ms) + MARGIN;
            if is_over(&status.report, request) || began.elapsed() > patience {
                return Ok(status.report);
            }
            thread::sleep(ASK_AGAIN);
        }
    }
}

/// Whether nothing more will happen to what was asked for: it has ended, or it stays.
fn is_over(report: &Report, request: &ReapRequest) -> bool {
    let mut servers = request.servers.iter().flatten().filter_map(|id| find(report, id));
    servers.all(|server| !matches!(server.state, State::Suspect | State::Ending))
}

impl Backend for Offline {
    fn report(&mut self) -> anyhow::Result<Report> {
        Ok(Offline::report(self))
    }

    fn reap(&mut self, request: &ReapRequest) -> anyhow::Result<Report> {
        Offline::reap(self, request.clone(), MARGIN, |report| is_over(report, request))
    }
}

#[cfg(test)]
mod tests;

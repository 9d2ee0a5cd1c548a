//! What `orphand reap` found nothing for: what is there instead of what was asked for, and how to select it. Pure.

use super::{
    super::{human, text},
    PlanItem,
};
use orphand_core::model::{AgentView, Asked, ReapRequest, Report, ServerReport, State};

/// A line for each target that selects nothing; without targets, one for the whole request.
pub fn nothing(request: &ReapRequest, planned: &[PlanItem], report: &Report) -> Vec<String> {
    if request.leftovers {
        let is_meant = |target: &&Asked| {
            let shown = planned.iter().flat_map(|one| &one.planned.server.processes);
            shown.into_iter().any(|one| target.is(one.id()))
                || planned.iter().any(|one| one.planned.server.hidden() > 0)
        };
        let missed = request.targets.iter().filter(|target| !is_meant(target));
        let missed: Vec<String> =
            missed.map(|target| format!("{target} is no leftover that orphand knows")).collect();
        let none = missed.is_empty() && planned.is_empty();
        return if none { vec!["no leftovers".to_owned()] } else { missed };
    }
    let missed = |target: &&Asked| {
        // Not all processes of a large server are listed: where one was selected, it may be that.
        let is_meant = |one: &PlanItem| match find(report, target) {
            Some((_, server)) => server.server.id == one.planned.server.id,
            None => one.planned.server.hidden() > 0,
        };
        !planned.iter().any(is_meant)
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
        let agent = report.agents.iter().map(|one| &one.agent);
        let mut agent = agent.filter(|one| target.is(one.id()));
        return agent.next().map_or_else(
            || format!("{target} is no part of an MCP server that orphand knows"),
            |agent| format!("{target} is the agent {}, and only servers are ended", human::agent_name(agent)),
        );
    };
    let name = format!("{} ({target})", text::sanitise(&server.server.name));
    if server.is_unproven() && !request.include_unproven && !request.duplicates {
        let why = human::list_doubts(&server.doubts);
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

/// The server that has this process, and its owner.
fn find<'a>(report: &'a Report, target: &Asked) -> Option<(Option<&'a AgentView>, &'a ServerReport)> {
    let has = |server: &ServerReport| {
        // The daemon does not send the members, and it lists only the first processes of a large server.
        let shown = server.server.ids();
        shown.iter().chain(&server.members).any(|one| target.is(*one))
    };
    report.servers().find(|(_, server)| has(server))
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
    format!("{}{which}{unproven}", none(request))
}

/// What there is none of.
const fn none(request: &ReapRequest) -> &'static str {
    match request {
        ReapRequest { duplicates: true, .. } => "no duplicates",
        ReapRequest { include_active: true, .. } => "no servers",
        ReapRequest { include_unproven: true, .. } => "no orphans and no unproven servers",
        _ => "no orphans",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::report::tests::{claude, report, server};
    use orphand_core::model::Doubt;

    fn told(request: &ReapRequest, report: &Report) -> String {
        nothing(request, &[], report).join("\n")
    }

    #[test]
    fn it_says_what_is_there_instead_and_how_to_select_it() {
        let report = report();
        let told = |request: &ReapRequest| told(request, &report);
        let targets = vec![Asked::Pid(6), Asked::Pid(77)];
        let both = ReapRequest { targets, ..ReapRequest::default() };
        assert_eq!(
            told(&both),
            "pid 6 is no part of an MCP server that orphand knows\n\
             pid 77 is the agent host.py, and only servers are ended"
        );
        let agent = |name: &str| ReapRequest { agent: Some(name.to_owned()), ..ReapRequest::default() };
        let unknown = "no agent or unit called \"nobody\" is there; `orphand ps` shows all";
        assert_eq!(told(&agent("nobody")), unknown);
        assert_eq!(told(&agent("bot.service")), "bot.service has no orphans");
        let numbered = ReapRequest { generation: Some(9), duplicates: true, ..agent("claude") };
        assert_eq!(told(&numbered), "claude #9 has no duplicates");
        let all = "no orphans; 1 unproven (--include-unproven selects them)";
        assert_eq!(told(&ReapRequest::default()), all);
    }

    #[test]
    fn a_server_that_stays_is_told_with_the_flag_that_ends_it() {
        let one = |state: State, duplicates| {
            let mut report = report();
            report.agents.truncate(1);
            report.agents[0].agent = claude(state == State::Live);
            report.agents[0].servers = vec![server("time", state, &[], &[Doubt::WireHeld], &[])];
            let targets = vec![Asked::Pid(99_300)];
            told(&ReapRequest { targets, duplicates, ..ReapRequest::default() }, &report)
        };
        let name = "time (pid 99300) is";
        assert_eq!(
            one(State::Live, false),
            format!("{name} live: its owner claude #3 is alive; --include-active ends it all the same")
        );
        assert_eq!(one(State::Live, true), format!("{name} live, and the other flags exclude it"));
        assert!(one(State::Suspect, false).starts_with(&format!("{name} suspect: its grace is not over")));
        assert_eq!(
            one(State::Unproven, false),
            format!(
                "{name} unproven: another process holds its stdin; --include-unproven ends it all the same"
            )
        );
    }
}

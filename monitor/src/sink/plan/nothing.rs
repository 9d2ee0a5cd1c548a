//! Why `orphand reap` has nothing to end: what is there instead of what was asked for, and how to select it. Pure.

use super::super::{human, text};
use orphand_core::model::{AgentView, ReapRequest, Report, ServerReport};

/// One line, and one more for each thing that could not be seen.
pub fn nothing(request: &ReapRequest, report: &Report) -> String {
    let why = match (request.pid, &request.agent) {
        (Some(pid), _) => of_process(pid, request, report),
        (None, Some(name)) => of_agent(name, request, report),
        (None, None) => of_host(request, report),
    };
    let unseen = report.blind.iter().map(|what| format!("Not seen: {}", text::sanitise(what)));
    let mut lines: Vec<String> = std::iter::once(format!("Nothing to end: {why}.")).chain(unseen).collect();
    lines.push(String::new());
    lines.join("\n")
}

fn of_process(pid: u32, request: &ReapRequest, report: &Report) -> String {
    let Some((owner, server)) = report.servers().find(|(_, server)| has(server, pid)) else {
        let agent = report.agents.iter().find(|one| one.agent.pid == pid);
        return agent.map_or_else(
            || format!("process {pid} is part of no MCP server that orphand knows"),
            |one| {
                format!(
                    "process {pid} is the agent {}, and only servers are ended",
                    human::agent_name(&one.agent)
                )
            },
        );
    };
    let name = text::sanitise(&server.server.name);
    if request.include_active || request.duplicates || server.is_unproven() || server.is_orphan() {
        return format!(
            "{name} (pid {pid}) is {}, and the other flags exclude it",
            text::sanitise(&server.state)
        );
    }
    let why = match (server.state.as_str(), owner) {
        ("suspect", _) => format!("the grace period of {name} is not over"),
        (_, Some(AgentView { alive: true, .. })) => {
            format!("{name} has an owner that is alive, {}", owner.map(human::agent_name).unwrap_or_default())
        }
        _ => format!("{name} is no orphan"),
    };
    format!("{why}; --include-active selects it all the same")
}

fn has(server: &ServerReport, pid: u32) -> bool {
    // The daemon does not send the members, and it lists only the first processes of a large server.
    let shown = server.server.processes.iter().map(|process| process.pid);
    shown.chain(server.members.iter().map(|member| member.pid)).any(|member| member == pid)
}

fn of_agent(name: &str, request: &ReapRequest, report: &Report) -> String {
    let is = |agent: &str, unit: Option<&String>| agent == name || unit.is_some_and(|unit| unit == name);
    let known = report.agents.iter().any(|one| is(&one.agent.name, one.agent.unit.as_ref()))
        || report.runs.iter().any(|one| is(&one.run.agent, one.run.unit.as_ref()))
        || report
            .servers()
            .filter_map(|(_, one)| one.server.run.as_ref())
            .any(|run| is(&run.agent, run.unit.as_ref()));
    let shown = text::sanitise(name);
    if !known {
        return format!("no agent or unit called \"{shown}\" is there; `orphand tree` shows all");
    }
    let number = request.generation.map_or_else(String::new, |number| format!(" #{number}"));
    format!("{shown}{number} has {}", none(request))
}

fn of_host(request: &ReapRequest, report: &Report) -> String {
    let which = request.generation.map_or_else(String::new, |number| format!(" of a run #{number}"));
    let unproven = report.servers().filter(|(_, server)| server.is_unproven()).count();
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

    #[test]
    fn it_says_what_is_there_instead_and_how_to_select_it() {
        let report = report();
        let told = |request: &ReapRequest| nothing(request, &report);
        let pid = |pid: u32| ReapRequest { pid: Some(pid), ..ReapRequest::default() };
        assert_eq!(told(&pid(6)), "Nothing to end: process 6 is part of no MCP server that orphand knows.\n");
        let agent = "Nothing to end: process 77 is the agent host.py, and only servers are ended.\n";
        assert_eq!(told(&pid(77)), agent);
        let agent = |name: &str| ReapRequest { agent: Some(name.to_owned()), ..ReapRequest::default() };
        let unknown =
            "Nothing to end: no agent or unit called \"nobody\" is there; `orphand tree` shows all.\n";
        assert_eq!(told(&agent("nobody")), unknown);
        assert_eq!(told(&agent("bot.service")), "Nothing to end: bot.service has no orphans.\n");
        let numbered = ReapRequest { generation: Some(9), duplicates: true, ..agent("claude") };
        assert_eq!(told(&numbered), "Nothing to end: claude #9 has no duplicates.\n");
        let all = "Nothing to end: no orphans; 1 unproven (--include-unproven selects them).\n";
        assert_eq!(told(&ReapRequest::default()), all);
    }

    #[test]
    fn a_server_in_use_is_told_with_its_owner() {
        let one = |state: &str, alive: bool| {
            let mut report = report();
            report.agents.truncate(1);
            report.agents[0].agent = claude(alive);
            report.agents[0].servers = vec![server("time", state, &[], &[], &[])];
            let request = ReapRequest { pid: Some(99_300), ..ReapRequest::default() };
            (nothing(&request, &report), nothing(&ReapRequest { duplicates: true, ..request }, &report))
        };
        let (live, other) = one("live", true);
        assert_eq!(
            live,
            "Nothing to end: time has an owner that is alive, claude #3; --include-active selects it all the same.\n"
        );
        assert_eq!(other, "Nothing to end: time (pid 99300) is live, and the other flags exclude it.\n");
        let (suspect, _) = one("suspect", false);
        assert!(suspect.contains("the grace period of time is not over; --include-active"), "{suspect}");
    }

    #[test]
    fn what_was_not_seen_is_said() {
        let report = Report { blind: vec!["not root".to_owned()], ..Report::default() };
        let told = nothing(&ReapRequest::default(), &report);
        assert_eq!(told, "Nothing to end: no orphans.\nNot seen: not root\n");
    }
}

//! Agents, servers and processes in the form that events show.

use super::{Agent, Server};
use crate::{
    lineage::{Graph, Node},
    model::{AgentView, Container, Image, ProcessId, ProcessView, ServerView, redact, shown_session},
    recognise::container_client,
};

pub fn process_view(node: &Node) -> ProcessView {
    let Image { exe, argv, argv_truncated } = node.image().cloned().unwrap_or_default();
    let argv = redact::argv(&argv);
    let (ProcessId { pid, start }, uid, stale_binary) = (node.id, node.uid, node.stale_binary);
    ProcessView { pid, start, uid, exe, argv, argv_truncated, stale_binary }
}

pub fn agent_view(agent: &Agent) -> AgentView {
    let account = &agent.account;
    let of_run = |unit: &String| {
        // Not its family, where the unit itself is known.
        let own = agent.unit.as_ref().filter(|facts| facts.unit.family().name == *unit);
        own.map_or_else(|| unit.clone(), |facts| facts.unit.name.clone())
    };
    AgentView {
        name: agent.name.clone(),
        pid: agent.main().pid,
        start: agent.main().start,
        uid: agent.uid,
        generation: account.generation,
        unit: account.unit.as_ref().map(of_run),
        invocation_id: account.invocation_id.clone(),
        alive: agent.is_alive(),
        implied: agent.implied,
        hints: agent.hints.clone(),
    }
}

/// A server with at most `shown` of its living processes, from the head of the launch chain down. What it has let go is none.
pub fn short_view(server: &Server, graph: &Graph, shown: usize) -> ServerView {
    let mut nodes: Vec<&Node> = server.own().filter_map(|id| graph.get(id)).collect();
    nodes.sort_by_key(|n| n.order);
    let clients = || nodes.iter().filter_map(|node| Some(container_client(node.image()?)?.of_user(node.uid)));
    let is_known = |one: &Container| one.id.is_some() || one.name.is_some() || one.image.is_some();
    let client = || clients().find(is_known).or_else(|| clients().next());
    let container = server.container.clone().or_else(client);
    ServerView {
        id: server.id.to_string(),
        name: server.name.clone(),
        rule: server.rule.clone(),
        client: server.client.clone(),
        processes_total: nodes.len() as u64,
        processes: nodes.into_iter().take(shown).map(process_view).collect(),
        rss_bytes: server.rss_bytes,
        cpu_ms: server.cpu_ms,
        run: server.account.clone(),
        session_leader: leads_session(server.main_process, graph),
        session: server.session_id.as_deref().map(shown_session),
        hints: server.hints.clone(),
        container,
    }
}

/// An agent that was left behind, in the form of a server: events report both as something that stays.
pub fn agent_as_server(agent: &Agent, graph: &Graph) -> ServerView {
    ServerView {
        id: agent.main().to_string(),
        name: agent.name.clone(),
        rule: "agent".to_owned(),
        processes: graph.get(agent.main()).map(process_view).into_iter().collect(),
        processes_total: u64::from(graph.get(agent.main()).is_some()),
        rss_bytes: agent.phase.verdict().map(|verdict| verdict.rss_bytes).filter(|bytes| *bytes > 0),
        run: Some(agent.account.clone()),
        session_leader: leads_session(agent.main(), graph),
        ..ServerView::default()
    }
}

fn leads_session(process: ProcessId, graph: &Graph) -> bool {
    graph.get(process).is_some_and(|n| n.sid == n.id.pid)
}

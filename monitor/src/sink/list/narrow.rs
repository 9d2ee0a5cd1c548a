//! Takes out of a report what was not asked for.

use orphand_core::model::{Report, State};

/// Leaves the servers in these states (all, if none is given) that belong to agents of this name or unit.
/// Returns whether anything is left.
pub fn narrow(report: &mut Report, states: &[State], agent: Option<&str>) -> bool {
    let stays = |state| states.is_empty() || states.contains(&state);
    for one in &mut report.agents {
        let is_named = agent.is_none_or(|name| one.agent.is_called(name));
        one.servers.retain(|server| stays(server.state) && (is_named || server.belongs_to(agent)));
    }
    let is_asked = |name: Option<&str>, one: &orphand_core::model::AgentReport| {
        !one.servers.is_empty() || (states.is_empty() && name.is_none_or(|name| one.agent.is_called(name)))
    };
    report.agents.retain(|one| is_asked(agent, one));
    report.unowned.retain(|server| stays(server.state) && server.belongs_to(agent));
    let (wants_leftovers, is_all) = (states.contains(&State::Leftover), states.is_empty());
    report.leftovers.retain(|one| {
        (wants_leftovers || is_all)
            && agent.is_none_or(|name| one.agent.is_called(name) || one.run.is_called(name))
    });
    let has_leftovers = wants_leftovers && !report.leftovers.is_empty();
    report.runs.retain(|one| agent.is_none_or(|name| one.run.is_called(name)));
    !report.agents.is_empty() || !report.unowned.is_empty() || has_leftovers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::report::tests::report;

    #[test]
    fn what_was_asked_for_stays() {
        let left = |states: &[State], agent| {
            let mut report = report();
            let any = narrow(&mut report, states, agent);
            assert_eq!(any, report.servers().next().is_some() || !report.agents.is_empty());
            let states = report.servers().map(|(_, one)| one.state).collect::<Vec<_>>();
            (report.agents.len(), states)
        };
        assert_eq!(left(&[], None).1.len(), 6);
        assert_eq!(left(&[State::Orphan, State::Kept], None), (1, vec![State::Orphan, State::Kept]));
        assert_eq!(left(&[State::Orphan], Some("claude")), (1, vec![State::Orphan]));
        assert_eq!(left(&[], Some("bot.service")), (1, vec![]));
        assert_eq!(left(&[], Some("nobody")), (0, vec![]));
        assert_eq!(left(&[State::Ending], None), (0, vec![]));
    }
}

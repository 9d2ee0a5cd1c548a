//! An event in a sentence that anybody may read.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::shown_server;
use crate::sink::{
    human::{agent_name, list_doubts, phrases},
    paint::{self, appearance},
};
use orphand_core::model::{Ending, Guard, Losses, Notice, list, signal_name, text};

/// What the page is told of the event with this number: when it was (milliseconds since 1970), in one word what happened, how
/// it is meant, and a sentence. Nothing for events that say little without a process number.
pub fn happening(id: u64, at: Timestamp, notice: &Notice) -> Option<Value> {
    let look = appearance(notice.kind());
    let tone = match look.style {
        paint::ALARM => "alarm",
        paint::GOOD => "good",
        _ if matches!(notice, Notice::Stopping { .. }) => "warning",
        paint::WARNING => "warning",
        _ => "note",
    };
    let (time, text) = (at.as_millisecond(), sentence(notice)?);
    Some(json!({ "id": id, "time": time, "kind": look.word, "tone": tone, "text": text }))
}

fn sentence(notice: &Notice) -> Option<String> {
    let (owner, server) = notice.views();
    // `server-filesystem of claude #3`, or the agent
    let who = match (server, owner) {
        (Some(server), owner) => format!("{}{}", shown_server(server), phrases::of_owner(owner)),
        (None, agent) => agent.map(agent_name).unwrap_or_default(),
    };
    Some(match notice {
        Notice::Ready { agents, servers, .. } => {
            let agents = text::count(*agents, "agent", "agents");
            format!("orphand watches: {agents}, {}", text::count(*servers, "server", "servers"))
        }
        Notice::AgentStarted { .. } | Notice::ServerStarted { .. } => format!("{who} started"),
        Notice::AgentExited { ending, servers_left, rss_bytes, .. } => {
            format!("{who}{}{}", how(ending), phrases::left(*servers_left, *rss_bytes))
        }
        Notice::LeftoversFound { count, rss_bytes, .. } => {
            format!("{who} left {}, {}", text::count(*count, "leftover", "leftovers"), text::size(*rss_bytes))
        }
        Notice::Alert { rule, on, agent, value, limit }
        | Notice::AlertResolved { rule, on, agent, value, limit, .. } => {
            phrases::threshold(rule, *on, agent.as_deref(), *value, *limit)
        }
        Notice::Reconfigured { .. } => "another configuration is in effect".to_owned(),
        Notice::Lost { records, .. } if *records == Losses::default() => {
            "events came too fast to be kept".to_owned()
        }
        Notice::Lost { .. } => "events were lost: orphand looks again".to_owned(),
        Notice::Resynced { .. } => "orphand looked again at all processes".to_owned(),
        Notice::Stopping { .. } => "orphand stops: nobody watches from now on".to_owned(),
        Notice::ServerExited { ending, .. } => format!("{who}{}", how(ending)),
        Notice::ServerDuplicated { count, .. } => format!("{who}: {count} servers of this kind now"),
        Notice::OrphanSuspected { .. } => format!("{who} was left behind: its grace period begins"),
        Notice::OrphanDetected { evidence, guards, rss_bytes, .. } => {
            format!("{who}, {}: {}{}", text::size(*rss_bytes), list(evidence), stays(guards))
        }
        Notice::OrphanUnproven { doubts, rss_bytes, .. } => {
            format!("{who}, {}, stays: {}", text::size(*rss_bytes), list_doubts(doubts))
        }
        Notice::OrphanSpared { guards, .. } => format!("{who}{}", stays(guards)),
        Notice::OrphanCleared { after_ms, .. } => {
            format!("{who} is no suspect any more, after {}", text::millis(*after_ms))
        }
        Notice::OrphanReaped { signal, took_ms, freed_bytes, freed_pss_bytes, .. } => {
            let by = signal.map(|signal| format!(" by {}", signal.name())).unwrap_or_default();
            let took = took_ms.map(|ms| format!(" in {}", text::millis(ms))).unwrap_or_default();
            format!("{who} was ended{by}{took}, {}", text::freed(*freed_bytes, *freed_pss_bytes))
        }
        Notice::ReapFailed { .. } => format!("{who} could not be ended"),
        Notice::OrphanExited { ending, .. } => format!("{who}, an orphan,{}", how(ending)),
        Notice::AgentsFolded { .. } | Notice::ServerDetached { .. } => return None,
    })
}

/// ` exited with code 1`. Who sent a signal is not for everybody.
fn how(ending: &Ending) -> String {
    match ending.signal {
        Some(signal) => format!(" was killed by {}", signal_name(signal)),
        None => format!(" {}", ending.words()),
    }
}

fn stays(guards: &[Guard]) -> String {
    if guards.is_empty() { String::new() } else { format!("; it stays: {}", list(guards)) }
}

//! An event in a sentence that anybody may read.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::names;
use crate::sink::human::{self, agent_name, list_doubts, list_guards, phrases};
use orphand_core::model::{AgentView, Ending, Notice, ServerView, signal_name, text};

/// An event as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Happening {
    /// Milliseconds since 1970.
    time: i64,
    /// One word: what happened.
    kind: &'static str,
    /// How it is meant: `note`, `good`, `warning`, `alarm`.
    tone: &'static str,
    /// The sentence.
    text: String,
}

impl Happening {
    /// Nothing for events that say little without a process number.
    pub(super) fn of(at: Timestamp, notice: &Notice) -> Option<Self> {
        let (kind, tone, text) =
            of_an_agent(notice).or_else(|| of_a_server(notice)).or_else(|| of_an_end(notice))?;
        Some(Self { time: at.as_millisecond(), kind, tone, text })
    }
}

type Sentence = (&'static str, &'static str, String);

fn of_an_agent(notice: &Notice) -> Option<Sentence> {
    Some(match notice {
        Notice::Ready { agents, servers, .. } => {
            let (agents, servers) =
                (text::count(*agents, "agent", "agents"), text::count(*servers, "server", "servers"));
            ("ready", "note", format!("orphand watches: {agents}, {servers}"))
        }
        Notice::AgentStarted { agent, .. } => ("agent", "note", format!("{} started", agent_name(agent))),
        Notice::AgentExited { agent, ending, servers_left, rss_bytes, .. } => {
            let how = how(ending);
            let left = match servers_left {
                0 => String::new(),
                _ => format!(
                    "; {} left, {}",
                    text::count(*servers_left, "server", "servers"),
                    text::size(*rss_bytes)
                ),
            };
            ("agent", "note", format!("{}{how}{left}", agent_name(agent)))
        }
        Notice::LeftoversFound { agent, count, rss_bytes, .. } => {
            let left = text::count(*count, "leftover", "leftovers");
            ("leftover", "warning", format!("{} left {left}, {}", agent_name(agent), text::size(*rss_bytes)))
        }
        Notice::Alert { rule, on, agent, value, limit } => {
            ("alert", "alarm", phrases::threshold(rule, *on, agent.as_deref(), *value, *limit))
        }
        Notice::AlertResolved { rule, on, agent, value, limit, .. } => {
            ("resolved", "good", phrases::threshold(rule, *on, agent.as_deref(), *value, *limit))
        }
        Notice::Reconfigured { .. } => ("config", "note", "another configuration is in effect".to_owned()),
        Notice::Lost { .. } => ("lost", "warning", "events were lost: orphand looks again".to_owned()),
        Notice::Resynced { .. } => ("repaired", "note", "orphand looked again at all processes".to_owned()),
        Notice::Stopping { .. } => {
            ("stopping", "warning", "orphand stops: nobody watches from now on".to_owned())
        }
        _ => return None,
    })
}

fn of_a_server(notice: &Notice) -> Option<Sentence> {
    Some(match notice {
        Notice::ServerStarted { server, owner, .. } => {
            ("server", "note", format!("{} started", named(server, owner.as_ref())))
        }
        Notice::ServerExited { server, owner, ending, .. } => {
            let how = how(ending);
            ("server", "note", format!("{}{how}", named(server, owner.as_ref())))
        }
        Notice::ServerDuplicated { server, owner, count } => {
            let who = named(server, owner.as_ref());
            ("double", "warning", format!("{who}: {count} servers of this kind now"))
        }
        Notice::OrphanSuspected { server, owner, .. } => {
            let who = named(server, owner.as_ref());
            ("suspect", "warning", format!("{who} was left behind: its grace period begins"))
        }
        Notice::OrphanDetected { server, owner, evidence, guards, rss_bytes, .. } => {
            let found: Vec<&str> = evidence.iter().copied().map(human::evidence).collect();
            let (who, size) = (named(server, owner.as_ref()), text::size(*rss_bytes));
            ("orphan", "alarm", format!("{who}, {size}: {}{}", found.join(", "), stays(&list_guards(guards))))
        }
        Notice::OrphanUnproven { server, owner, doubts, rss_bytes, .. } => {
            let (who, size) = (named(server, owner.as_ref()), text::size(*rss_bytes));
            ("unproven", "warning", format!("{who}, {size}, stays: {}", list_doubts(doubts)))
        }
        Notice::OrphanSpared { server, owner, guards, .. } => {
            let who = named(server, owner.as_ref());
            ("spared", "warning", format!("{who}{}", stays(&list_guards(guards))))
        }
        _ => return None,
    })
}

fn of_an_end(notice: &Notice) -> Option<Sentence> {
    Some(match notice {
        Notice::OrphanCleared { server, owner, after_ms, .. } => {
            let after = text::duration(Duration::from_millis(*after_ms));
            (
                "cleared",
                "good",
                format!("{} is no suspect any more, after {after}", named(server, owner.as_ref())),
            )
        }
        Notice::OrphanReaped { server, owner, signal, took_ms, freed_bytes, freed_pss_bytes, .. } => {
            let by = signal.map(|signal| format!(" by {}", phrases::sent(signal))).unwrap_or_default();
            let took = took_ms.map(|ms| format!(" in {}", text::duration(Duration::from_millis(ms))));
            let freed = text::freed(*freed_bytes, *freed_pss_bytes);
            let who = named(server, owner.as_ref());
            ("reaped", "good", format!("{who} was ended{by}{}, {freed}", took.unwrap_or_default()))
        }
        Notice::ReapFailed { server, .. } => {
            ("failed", "alarm", format!("{} could not be ended", named(server, None)))
        }
        Notice::OrphanExited { server, owner, ending, .. } => {
            let how = how(ending);
            ("ended", "good", format!("{}, an orphan,{how}", named(server, owner.as_ref())))
        }
        _ => return None,
    })
}

/// ` exited with code 1`. Who sent a signal is not for everybody.
fn how(ending: &Ending) -> String {
    match (ending.exit_code, ending.signal) {
        (_, Some(signal)) => format!(" was killed by {}", signal_name(signal)),
        (Some(0), None) => " exited".to_owned(),
        (Some(code), None) => format!(" exited with code {code}"),
        (None, None) => " ended".to_owned(),
    }
}

/// `server-filesystem of claude #3`.
fn named(server: &ServerView, owner: Option<&AgentView>) -> String {
    format!("{}{}", names::server(server), phrases::of_owner(owner))
}

fn stays(guards: &str) -> String {
    if guards.is_empty() { String::new() } else { format!("; it stays: {guards}") }
}

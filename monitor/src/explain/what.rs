//! What a process is taken for and why, or why it is nothing.

use super::Moment;
use crate::sink::human;
use orphand_core::model::{
    AgentHints, AgentView, Evidence, Explained, NoServer, Nothing, ServerReport, State, Stdio, TakenFor,
    recognised_by, text,
};

const CUT_OFF: &str = "Its standard input has ended, and nobody reads its output: it was left behind itself.";

/// The name of a process: that of its server, of its agent, or of its program.
pub(super) fn name(one: &Explained) -> String {
    let agent = one.agent.as_ref().map(|agent| agent.name.clone());
    let server = one.report.as_deref().map(|report| report.server.name.clone());
    let program = || {
        let path = one.process.argv.first().filter(|path| !path.is_empty()).unwrap_or(&one.process.exe);
        text::base(path).to_owned()
    };
    Some(agent.or(server).unwrap_or_else(program))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "a process".to_owned())
}

pub(super) fn sentences(one: &Explained, moment: &Moment) -> Vec<String> {
    let held = human::holdings(&one.holdings, ["It listens on: ", "It holds locks, or lock files: "]);
    let held = held.into_iter().map(|held| held + ".");
    let mut all = Vec::new();
    match (one.taken_for, &one.report, &one.agent, &one.nothing) {
        (TakenFor::Agent, report, Some(agent), _) => {
            all.extend(agent_sentences(agent, one));
            match report {
                Some(left) if left.evidence.contains(&Evidence::StdinHangup) => all.push(CUT_OFF.to_owned()),
                Some(_) => all.push("It was left behind itself.".to_owned()),
                None => {}
            }
            all.extend(held);
            return all;
        }
        (_, _, _, Some(nothing)) => {
            return std::iter::once(nothing_sentence(nothing)).chain(held).collect();
        }
        (TakenFor::Leftover, Some(report), ..) => all.extend(leftover_sentences(one, report)),
        (_, Some(report), ..) => all.extend(server_sentences(one, report)),
        _ => return all,
    }
    all.extend(held);
    all.push(owner_sentence(one, moment));
    if let Some(place) = one.owner.as_ref().and_then(|owner| owner.hints.words()) {
        all.push(format!("That is the agent of {}.", text::sanitise(&place)));
    }
    if let Some((cause, since)) = one.cause.as_deref().and_then(cause_sentence).zip(one.since) {
        let by = one.released_by.map(|uid| format!(" by {}", moment.user(uid))).unwrap_or_default();
        all.push(format!("It is inspected because {cause}{by}, {}.", moment.boot_time(since)));
    }
    all
}

fn agent_sentences(agent: &AgentView, one: &Explained) -> Vec<String> {
    let name = text::sanitise(&agent.name);
    let by = match &one.rule {
        _ if agent.implied => "because it started a server; no rule knows it".to_owned(),
        Some(rule) => format!("by the rule {}", text::sanitise(rule)),
        None => "by a rule".to_owned(),
    };
    let mut all = vec![format!("It is taken for an agent, \"{name}\", {by}.")];
    if let Some(generation) = agent.generation {
        all.push(format!("This is its run #{generation}."));
    }
    all.extend(whereabouts(&agent.hints));
    all.push(match one.servers {
        0 => "It has no server now.".to_owned(),
        many => format!("It has {} now.", text::count(many, "server", "servers")),
    });
    all
}

fn server_sentences(one: &Explained, report: &ServerReport) -> Vec<String> {
    let (name, rule) = (text::sanitise(&report.server.name), text::sanitise(&report.server.rule));
    let main = text::sanitise(&report.server.id);
    let by = match recognised_by(&report.server.rule) {
        "protocol" => {
            "by a message of the protocol, by the settings of an agent, or by the command line of a bridge"
        }
        "arguments" => "by its arguments",
        "name" => "by the name of its program",
        _ => "by a rule of the configuration",
    };
    let by = format!("{by} (rule {rule})");
    let mut all = vec![match one.taken_for {
        TakenFor::Wrapper => format!("It is a shell or launcher around the server \"{name}\" ({main})."),
        TakenFor::ServerPart => {
            let which = match report.state {
                _ if one.let_go => "which has let it go: it is no part of it, and is not ended with it",
                State::Live => "and is part of it, unless an inspection finds that it was let go",
                _ => "and is part of it",
            };
            format!("It was started by the server \"{name}\" ({main}), {which}.")
        }
        _ => format!("It is taken for a stdio server, \"{name}\", {by}."),
    }];
    if one.taken_for != TakenFor::Server {
        all.push(format!("That is taken for a server {by}."));
    }
    if one.only_named {
        all.push("Only its name says so: no message of the protocol to it was seen.".to_owned());
    }
    if let Some(client) = &report.server.client {
        all.push(format!("Its client calls itself \"{}\".", text::sanitise(client)));
    }
    if let Some(configured) = &report.server.hints.configured_name {
        all.push(format!("The settings of its agent call it \"{}\".", text::sanitise(configured)));
    }
    if let Some(folder) = &report.server.hints.cwd {
        all.push(format!("It works in {}.", text::sanitise(folder)));
    }
    if let Some(newest) = &report.duplicate_of {
        all.push(format!("Its owner has a newer one of the same identity: {}.", text::sanitise(newest)));
    }
    if let Some(bytes) = report.server.rss_bytes {
        let processes = text::count(report.server.count(), "process", "processes");
        all.push(format!("It has {processes} and {} of memory.", text::size(bytes)));
    }
    all
}

fn leftover_sentences(one: &Explained, report: &ServerReport) -> Vec<String> {
    let (name, class) = (text::sanitise(&report.server.name), text::sanitise(&report.server.rule));
    let processes = text::count(report.server.count(), "process", "processes");
    let is_head = report.server.id == one.id().to_string();
    vec![if is_head {
        format!(
            "It is a leftover, \"{name}\" ({class}, {processes}): its agent started it and has ended, and it is no server."
        )
    } else {
        let id = text::sanitise(&report.server.id);
        format!("It is part of the leftover \"{name}\" ({id}, {class}, {processes}).")
    }]
}

fn whereabouts(hints: &AgentHints) -> Vec<String> {
    let folder = hints.cwd.as_ref().map(|folder| format!("works in {folder}"));
    let terminal = hints.terminal.as_ref().map(|terminal| format!("is on {terminal}"));
    let session = hints.session.as_ref().map(|id| format!("tells its servers the session {id}"));
    let facts: Vec<String> = [folder, terminal, session].into_iter().flatten().collect();
    let told = text::clean(&facts.join(", and "));
    if facts.is_empty() { Vec::new() } else { vec![format!("It {told}.")] }
}

fn owner_sentence(one: &Explained, moment: &Moment) -> String {
    let Some(owner) = &one.owner else { return "No owner of it is known.".to_owned() };
    let who = format!("Its owner is {}, pid {}", owner.title(), owner.pid);
    match one.owner_exited {
        Some(at) => format!("{who}, which exited {}.", moment.boot_time(at)),
        None if owner.alive => format!("{who}, which lives."),
        None => format!("{who}, which has exited."),
    }
}

/// Why it is looked at, without its time.
pub(super) fn cause_sentence(cause: &str) -> Option<&'static str> {
    Some(match cause {
        "owner_exited" => "its owner exited",
        "no_owner" => "it was found without an owner",
        "unit_restarted" => "its unit was stopped, or started again without it",
        "abandoned" => "its owner has abandoned it",
        "spawner_thread_exited" => "the thread that started it has ended",
        "asked" => "a person asked to end it",
        "released" => "it was released",
        "session_expired" => "its session has expired",
        "idle_duplicate" => "it is idle, and a newer server of the same identity is in use",
        _ => return None,
    })
}

pub(super) fn nothing_sentence(nothing: &Nothing) -> String {
    let rule = text::clean(nothing.rule.as_deref().unwrap_or("of the configuration"));
    let [stdin, stdout] = nothing.streams.map(stream);
    let says = match nothing.reason {
        NoServer::KernelThread => "It is nothing: a thread of the kernel.",
        NoServer::NoWire => {
            "It is nothing, though the rule {rule} knows its program: a stdio server talks through pipes or sockets, and its \
             standard input is {stdin}, its standard output {stdout}."
        }
        NoServer::NotFollowed => {
            "The rule {rule} knows its program, and it has wires, but it is not followed: it has just begun, or it is outside \
             of what was looked at."
        }
        NoServer::Shell => "It is nothing: a shell. What a shell starts belongs to nobody.",
        NoServer::Launcher => {
            "It is nothing: a program that starts others, and no server runs below it on its streams."
        }
        NoServer::Multiplexer => "It is nothing: a terminal multiplexer. What runs in it belongs to nobody.",
        NoServer::Exempt => "It is nothing: the rule {rule} exempts it and what it starts.",
        NoServer::ServiceManager => {
            "It is nothing: a supervisor. It starts again what ends, or adopts what others leave."
        }
        NoServer::Protected => "It is nothing: it was started inside a multiplexer or an exempt program.",
        NoServer::AgentNotFollowed => {
            "The rule {rule} knows it as an agent, but it is not followed: it has just begun, or it is outside of what was \
             looked at."
        }
        NoServer::NearMiss => {
            "It is nothing, though its name or its arguments look like those of a server: no rule matches it, and no message of \
             the protocol to it was seen. Its standard input is {stdin}."
        }
        NoServer::ShellsJob => "It is nothing: a shell made its pipes, so it is a job of that shell.",
        NoServer::Silent => {
            "It is nothing: no rule knows its program, and no message of the protocol to it was seen."
        }
        NoServer::Unrelated => {
            "It is nothing: no rule knows its program, and it has no wire. Its standard input is {stdin}."
        }
        NoServer::Unread => {
            "What it is cannot be said: its program or its streams could not be read. Only root can read other users' \
             processes, and even he none that has more rights than he, or that a security module guards."
        }
    };
    // The name of a rule comes last: what is in it is no place for anything.
    says.replace("{stdin}", stdin).replace("{stdout}", stdout).replace("{rule}", &rule)
}

const fn stream(stdio: Stdio) -> &'static str {
    match stdio {
        Stdio::Closed => "closed or not known",
        Stdio::Null => "/dev/null",
        Stdio::Terminal => "a terminal",
        Stdio::File => "a file",
        Stdio::Pipe(_) => "a pipe",
        Stdio::Socket(_) => "a socket",
        Stdio::Other => "a device",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{moment, with};
    use super::*;
    use orphand_core::model::{BootTime, State};

    /// Who released it: root, or a user. The twin was released by nobody.
    #[test]
    fn who_released_it_is_said() {
        let named = std::collections::BTreeMap::from([(0, "root".to_owned())]);
        for (released_by, says) in
            [(Some(0), "released by root, "), (Some(7), "released by uid 7, "), (None, "released, ")]
        {
            let case = (Some("released".to_owned()), Some(BootTime(0)));
            let mut one = with(State::Suspect, |_| {});
            (one.cause, one.since) = case;
            one.released_by = released_by;
            let moment = Moment { users: named.clone(), ..moment() };
            let last = sentences(&one, &moment).pop().unwrap();
            assert!(last.starts_with(&format!("It is inspected because it was {says}")), "{last}");
        }
    }
}

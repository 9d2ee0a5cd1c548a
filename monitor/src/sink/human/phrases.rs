//! Phrases for the parts of a notice.

use orphand_core::model::{
    AgentView, Doubt, Guard, Holdings, Leftover, ProcessView, ReachedBy, ServerView, Watched, list, text,
};

const LINKS: usize = 5;

/// Programs whose first argument says what they do.
const MULTI_CALL: [&str; 8] = ["npm", "pnpm", "yarn", "bun", "uv", "docker", "podman", "deno"];

pub(crate) fn agent_name(agent: &AgentView) -> String {
    agent.title()
}

/// `1 agent, 3 servers, no orphans`.
pub(crate) fn counts([agents, servers, orphans]: [u64; 3]) -> String {
    let servers = text::count(servers, "server", "servers");
    let agents = text::count(agents, "agent", "agents");
    format!("{agents}, {servers}, {}", text::count(orphans, "orphan", "orphans"))
}

/// `; 3 servers left, 591 MB`, or nothing.
pub(super) fn left(servers: u64, bytes: u64) -> String {
    let left = text::count(servers, "server", "servers");
    if servers == 0 { String::new() } else { format!("; {left} left, {}", text::size(bytes)) }
}

/// `pid 1234`, from the id of a server.
pub(in crate::sink) fn pid_of(server: &str) -> String {
    format!("pid {}", text::sanitise(server.split('@').next().unwrap_or(server)))
}

/// ` of claude #3`, or nothing.
pub(super) fn of_owner(owner: Option<&AgentView>) -> String {
    owner.map_or_else(String::new, |owner| format!(" of {}", agent_name(owner)))
}

/// `; 14 servers from before may be left behind: ..`, or nothing.
pub(super) fn left_before(found: u64) -> String {
    if found == 0 {
        return String::new();
    }
    let servers = text::count(found, "server", "servers");
    format!("; {servers} from before may have been left behind; only you end them: sudo orphand reap")
}

/// What is not known to have started was found.
pub(super) const fn began(found: bool) -> &'static str {
    if found { "found" } else { "started" }
}

/// `npm exec > sh > node, pid 1234`: a server that was just recognised.
pub(super) fn born(server: &ServerView) -> String {
    let process = match server.processes.last() {
        Some(process) => format!("{}, pid {}", launch_chain(&server.processes), process.pid),
        None => text::clean(&server.id),
    };
    process + &client(server)
}

/// `, client claude-code`: who talks to a server, if the client said it.
fn client(server: &ServerView) -> String {
    server.client.as_deref().map(|name| format!(", client {}", text::sanitise(name))).unwrap_or_default()
}

/// `npm exec > sh > node, 4 processes, 197 MB`.
pub(super) fn extent(server: &ServerView, rss_bytes: u64) -> String {
    let mut parts = vec![launch_chain(&server.processes)];
    match server.processes.as_slice() {
        [only] => parts.push(format!("pid {}", only.pid)),
        _ => parts.push(text::count(server.count(), "process", "processes")),
    }
    parts.push(text::size(rss_bytes));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// The programs of a server from the head of the launch chain down: `npm exec > sh > node > chrome x12`.
fn launch_chain(processes: &[ProcessView]) -> String {
    let mut links: Vec<(String, usize)> = Vec::new();
    for process in processes {
        let program = program(process);
        match links.last_mut() {
            Some((last, times)) if *last == program => *times += 1,
            _ => links.push((program, 1)),
        }
    }
    let more = if links.len() > LINKS { " > .." } else { "" };
    let link = |(program, times)| if times > 1 { format!("{program} x{times}") } else { program };
    let shown: Vec<String> = links.into_iter().take(LINKS).map(link).collect();
    format!("{}{more}", shown.join(" > "))
}

/// In one or two words. argv has the name that people know (`npm exec`); without it that of the executable.
fn program(process: &ProcessView) -> String {
    let title = process.argv.first().map_or("", String::as_str);
    let mut parts = title.split_whitespace();
    let first = parts.next().unwrap_or(&process.exe);
    let name = text::base(first).trim_end_matches(':');
    let second = parts.next().or_else(|| process.argv.get(1).map(String::as_str)).unwrap_or_default();
    let is_verb = !second.is_empty() && second.bytes().all(|b| b.is_ascii_lowercase());
    let shown =
        if MULTI_CALL.contains(&name) && is_verb { format!("{name} {second}") } else { name.to_owned() };
    text::clean(&shown)
}

/// The doubts as text, never empty. Of a client whom nobody can name, the last step of the path says more than the doubt.
pub(crate) fn list_doubts(doubts: &[Doubt], reached_by: &[ReachedBy]) -> String {
    if doubts.is_empty() {
        return "it is not proven that nobody uses it".to_owned();
    }
    let unnamed = reached_by.last().filter(|step| step.pid.is_none() && step.is_use());
    let words = |doubt: &Doubt| match unnamed {
        Some(step) if *doubt == Doubt::Clients => format!("somebody {}", text::sanitise(&step.via)),
        _ => doubt.reason().short.to_owned(),
    };
    doubts.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// The guards of a server as text. If its container keeps it, with the command that a person can run.
pub(crate) fn guards_of(server: &ServerView, guards: &[Guard]) -> String {
    let command = server.container.as_ref().filter(|_| guards.contains(&Guard::Container));
    let run = command.map(|container| {
        let setting = container.setting.as_ref().map(|line| format!("; to let orphand do it: {line}"));
        format!(" (run: {}{})", text::sanitise(&container.command), setting.unwrap_or_default())
    });
    format!("{}{}", list(guards), run.unwrap_or_default())
}

/// The ports and the locks that block others, each behind its words.
pub(crate) fn holdings(held: &Holdings, [ports, locks]: [&str; 2]) -> Vec<String> {
    let all = [(ports, &held.listens), (locks, &held.locks)].into_iter().filter(|(_, all)| !all.is_empty());
    all.map(|(words, all)| format!("{words}{}", text::sanitise(&all.join(", ")))).collect()
}

/// `; 2 processes that it started stay`, or nothing.
pub(super) fn remaining(let_go: &[ProcessView]) -> String {
    match let_go.len() {
        0 => String::new(),
        1 => "; 1 process that it started stays".to_owned(),
        more => format!("; {more} processes that it started stay"),
    }
}

/// ` and 2 more`, or nothing.
pub(super) fn and_more(number: u64) -> String {
    if number == 0 { String::new() } else { format!(" and {number} more") }
}

/// `left 3 leftovers, 45.0 MB: bash (pid 4711, shell), node (pid 4712, listener, 127.0.0.1:3000)`.
pub(super) fn leftovers(count: u64, rss_bytes: u64, heads: &[Leftover]) -> String {
    const MOST: usize = 4;
    let one = |head: &Leftover| {
        let path = head.process.argv.first().filter(|path| !path.is_empty()).unwrap_or(&head.process.exe);
        let name = text::clean(text::base(path));
        let ports: Vec<_> = head.listens.iter().take(MOST).map(|port| text::sanitise(port)).collect();
        let ports = if ports.is_empty() { String::new() } else { format!(", {}", ports.join(", ")) };
        format!("{name} (pid {}, {}{ports})", head.process.pid, text::word(head.class))
    };
    let shown: Vec<String> = heads.iter().take(MOST).map(one).collect();
    let more = and_more(count.saturating_sub(shown.len() as u64));
    let left = format!("left {}, {}", text::count(count, "leftover", "leftovers"), text::size(rss_bytes));
    if heads.is_empty() { left } else { format!("{left}: {}{more}", shown.join(", ")) }
}

/// `too many: 12 orphans of claude, limit 10`.
pub(super) fn threshold(rule: &str, on: Watched, agent: Option<&str>, value: u64, limit: u64) -> String {
    let rule = text::sanitise(rule);
    let of = agent.map(|agent| format!(" of {}", text::sanitise(agent))).unwrap_or_default();
    let (value, limit) = match on {
        Watched::Blind if value > 0 => return format!("{rule}: kernel records are lost"),
        Watched::Blind => return format!("{rule}: no kernel records are lost any more"),
        Watched::Orphans => (text::count(value, "orphan", "orphans"), limit.to_string()),
        Watched::Rss => (format!("{} in orphans", text::size(value)), text::size(limit)),
        Watched::Cpu => (format!("{value} % of a CPU in orphans and unproven servers"), format!("{limit} %")),
        Watched::Rate => (text::count(value, "new orphan", "new orphans"), limit.to_string()),
        Watched::ReapFailures => (
            text::count(value, "process that could not be ended", "processes that could not be ended"),
            limit.to_string(),
        ),
    };
    format!("{rule}: {value}{of}, limit {limit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::report::tests::filesystem;
    use orphand_core::model::Container;

    #[test]
    fn the_command_for_a_container_is_told_with_its_guard() {
        let command = "docker stop box\u{1b}[2J".to_owned();
        let container = Some(Container { command, ..Container::default() });
        let server = ServerView { container, ..filesystem() };
        let told = guards_of(&server, &[Guard::Observe, Guard::Container]);
        assert!(told.starts_with(
            "orphand is paused or only observes, it works in a container (run: docker stop box"
        ));
        assert!(!told.contains('\u{1b}'));
        assert!(!guards_of(&server, &[Guard::Observe]).contains("docker"));
        assert!(!guards_of(&filesystem(), &[Guard::Container]).contains("run:"));
    }

    #[test]
    fn what_a_client_that_nobody_can_name_may_do_is_said() {
        let step = |pid, by: &str| ReachedBy {
            pid,
            by: by.to_owned(),
            via: "may call it".to_owned(),
            ..ReachedBy::default()
        };
        let both = [Doubt::OwnerUnknown, Doubt::Clients];
        for (path, said) in [
            (vec![step(Some(7), "call"), step(None, "listener")], "somebody may call it"),
            (vec![step(None, "listener"), step(Some(7), "call")], "a client may call it"),
            (vec![step(None, "stdin")], "a client may call it"),
            (vec![], "a client may call it"),
        ] {
            assert_eq!(list_doubts(&both, &path), format!("it is not known for whom it works, {said}"));
            assert_eq!(list_doubts(&both[..1], &path), "it is not known for whom it works");
        }
    }
}

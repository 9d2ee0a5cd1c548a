//! The text of `orphand tree`: agents, servers, processes; orphans and unproven servers are marked.

use std::{fmt::Write as _, os::fd::AsFd};

use super::{
    human,
    paint::{self, Paint},
    scan, text,
};
use orphand_core::model::{AgentView, ProcessView, Report, ServerReport, ServerView};

/// The report as a tree. Command lines are cut at `width` columns, if given.
pub fn render(report: &Report, paint: Paint, width: Option<usize>) -> String {
    let tree = Tree { paint, width };
    let mut out = String::new();
    for agent in &report.agents {
        out.push_str(&tree.agent(&agent.agent));
        tree.servers(&agent.servers, &mut out);
    }
    if !report.unowned.is_empty() {
        out.push_str(&paint.text(paint::DIM, "without an owner"));
        out.push('\n');
        tree.servers(&report.unowned, &mut out);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&scan::sum(report));
    out.push('\n');
    for what in &report.blind {
        out.push_str(&paint.text(paint::WARNING, format_args!("Not seen: {}", text::sanitise(what))));
        out.push('\n');
    }
    out
}

/// The number of columns if `out` is a terminal.
pub fn width(out: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[derive(Clone, Copy)]
struct Tree {
    paint: Paint,
    width: Option<usize>,
}

impl Tree {
    fn agent(self, agent: &AgentView) -> String {
        let mut facts = vec![format!("pid {}", agent.pid)];
        facts.extend(agent.unit.as_deref().map(|unit| text::sanitise(unit).into_owned()));
        if agent.implied {
            facts.push("recognised by its servers".to_owned());
        }
        if !agent.alive {
            facts.push("exited".to_owned());
        }
        let name = self.paint.text(paint::NAME, human::agent_name(agent));
        format!("{name}  {}\n", self.paint.text(paint::DIM, facts.join(", ")))
    }

    fn servers(self, servers: &[ServerReport], out: &mut String) {
        for (n, server) in servers.iter().enumerate() {
            let (branch, below) =
                if n + 1 == servers.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let branch = self.paint.text(paint::DIM, branch);
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{branch}{}", self.server(server));
            self.processes(&server.server, below, out);
        }
    }

    fn server(self, report: &ServerReport) -> String {
        let mut line = String::new();
        if report.state != "live" {
            let state = text::sanitise(&report.state).to_uppercase();
            let _ = write!(line, "{} ", self.paint.text(scan::style(report), state));
        }
        line.push_str(&self.paint.text(paint::NAME, text::sanitise(&report.server.name)));
        if let Some(bytes) = report.server.rss_bytes {
            let _ = write!(line, "  {}", text::size(bytes));
        }
        if let Some(client) = &report.server.client {
            let _ = write!(line, "  client {}", text::sanitise(client));
        }
        let why = report.evidence.iter().copied().map(human::evidence).map(str::to_owned);
        let why: Vec<String> = why.chain(scan::remarks(report)).collect();
        let stays = scan::reasons_to_stay(report).map(|why| format!("stays: {why}"));
        let why: Vec<String> = (!why.is_empty()).then(|| why.join(", ")).into_iter().chain(stays).collect();
        if !why.is_empty() {
            let _ = write!(line, ": {}", why.join("; "));
        }
        line
    }

    fn processes(self, server: &ServerView, indent: &str, out: &mut String) {
        let processes = &server.processes;
        let digits = processes.iter().map(|process| process.pid.to_string().len()).max().unwrap_or_default();
        for (n, process) in processes.iter().enumerate() {
            let last = n + 1 == processes.len() && server.hidden() == 0;
            let branch = if last { "└─ " } else { "├─ " };
            let lead = format!("{indent}{branch}");
            let room = self.width.map(|width| width.saturating_sub(lead.chars().count() + digits + 2));
            let command = cut(command_line(process), room);
            let lead = self.paint.text(paint::DIM, lead);
            let _ = writeln!(out, "{lead}{:>digits$}  {command}", process.pid);
        }
        if server.hidden() > 0 {
            let lead = self.paint.text(paint::DIM, format!("{indent}└─ "));
            let _ = writeln!(out, "{lead}and {} more", server.hidden());
        }
    }
}

/// The arguments roughly as one would type them; without arguments, the executable.
fn command_line(process: &ProcessView) -> String {
    if process.argv.is_empty() {
        return text::sanitise(&process.exe).into_owned();
    }
    let quoted = process.argv.iter().enumerate().map(|(n, argument)| {
        let argument = text::sanitise(argument);
        // A title of many words in argv[0] is not a name with blanks and gets no quotes.
        let plain = n == 0 || !(argument.is_empty() || argument.contains([' ', '"', '\'']));
        if plain { argument.into_owned() } else { format!("'{}'", argument.replace('\'', r"'\''")) }
    });
    let mut line = quoted.collect::<Vec<_>>().join(" ");
    if process.argv_truncated {
        line.push_str(" …");
    }
    line
}

fn cut(line: String, room: Option<usize>) -> String {
    match room {
        Some(room) if line.chars().count() > room => {
            let kept: String = line.chars().take(room.saturating_sub(1)).collect();
            kept + "…"
        }
        _ => line,
    }
}

//! `orphand explain`: facts about a process, or about one that has ended, as sentences and as JSON. Pure: the facts
//! come from the engine, the store and /proc, and are put together elsewhere.
//!
//! Invariant: no line of the text is longer than its width, but for a single word or a command that is.

mod next;
mod past;
mod report;
#[cfg(test)]
mod tests;
mod what;

use std::{borrow::Cow, collections::BTreeMap};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use textwrap::{Options, WordSplitter};

use crate::sink::{
    paint::{self, Paint},
    wall_clock::{self, WallClock},
};
use orphand_core::model::{
    BootTime, Creator, ExemptedBy, Explained, Guard, Kept, NoServer, PastOrphan, PastRun, ProcessId,
    ReachedBy, Reason, ServerReport, TakenFor, recognised_by, text,
};

pub use self::{past::ran, report::report};

pub const ALONE: &str = "No daemon has answered. This is one look through /proc, which cannot know who created what \
has exited, when an owner exited, or what a daemon would do next.";

#[derive(Clone, Debug, Default)]
pub struct Explanation {
    pub living: Vec<Explained>,
    /// What was judged and is not there any more, the latest last.
    pub ended: Vec<PastOrphan>,
    /// The latest run of an agent that is meant and is not there any more.
    pub ran: Option<PastRun>,
    /// Whether more of that name live than are explained.
    pub more: bool,
    pub asked_daemon: bool,
    pub blind: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Moment {
    pub now: BootTime,
    /// Leads from the boot clock to the wall clock.
    pub wall: WallClock,
    pub zone: TimeZone,
    pub users: BTreeMap<u32, String>,
}

impl Moment {
    fn time(&self, at: Timestamp) -> String {
        wall_clock::shown(at, &self.zone)
    }

    fn boot_time(&self, at: BootTime) -> String {
        self.time(self.wall.timestamp(at))
    }

    fn user(&self, uid: u32) -> String {
        self.users.get(&uid).map_or_else(|| format!("uid {uid}"), |name| text::clean(name))
    }

    /// How long it is until then, as text; `now` if it has passed.
    fn until(&self, at: BootTime) -> String {
        match at.since(self.now) {
            left if left.is_zero() => "now".to_owned(),
            left => format!("in {}", text::duration(left)),
        }
    }
}

/// `width`: for who folds lines himself, it has none.
pub fn render(all: &Explanation, moment: &Moment, width: Option<usize>, paint: Paint) -> String {
    let mut pages: Vec<Page> = all.living.iter().map(|one| page(one, all.asked_daemon, moment)).collect();
    pages.extend(all.ended.iter().map(|one| past::page(one, moment)));
    let mut notes: Vec<String> = Vec::new();
    if all.more {
        notes.push("There are more of that name: `orphand ps` lists all.".to_owned());
    }
    if !all.asked_daemon && !all.living.is_empty() {
        notes.push(ALONE.to_owned());
    }
    notes.extend(all.blind.iter().map(|why| format!("Could not be seen: {}.", text::sanitise(why))));
    lay_out(&pages, &notes, width, paint)
}

pub fn json(all: &Explanation, moment: &Moment) -> Value {
    json!({
        "source": if all.asked_daemon { "daemon" } else { "proc" },
        "blind": all.blind,
        "explained": all.living.iter().map(|one| fields(one, all.asked_daemon, moment)).collect::<Vec<_>>(),
        "more": all.more,
        "ended": all.ended.iter().map(past::fields).collect::<Vec<_>>(),
    })
}

fn page(one: &Explained, asked_daemon: bool, moment: &Moment) -> Page {
    let mut sections =
        vec![("What it is", what::sentences(one, moment)), ("Where it comes from", line(one, moment))];
    if let Some(report) = &one.report {
        // From the one that reaches it to somebody who acts by himself, and whoever else can.
        let holders = report.reached_by.iter().rev().map(|step| reached(step, moment));
        sections.push(("Who holds it", holders.collect()));
        sections.push(("Evidence", reasons(&report.evidence)));
        sections.push(("Doubts", reasons(&report.doubts)));
        sections.push(("Guards", guards(one, report, moment)));
    }
    sections.push(("What it keeps", one.keeps.iter().map(kept).collect()));
    sections.push(("What happens next", next::sentences(one, asked_daemon, moment)));
    let commands = next::commands(one).into_iter().map(|(command, what)| format!("{command}\n{what}"));
    sections.push(("What you can type", commands.collect()));
    let title = format!("{} (pid {}): {}", text::sanitise(&what::name(one)), one.process.pid, state(one));
    Page { title, sections }
}

/// What each reason says, and what would change it.
fn reasons(all: &[impl Copy + Into<&'static Reason>]) -> Vec<String> {
    all.iter().map(|one| (*one).into()).map(|one| format!("{} {}", one.says, one.changes)).collect()
}

/// What each guard says, with whom or what it means where that is known, and what would change it.
fn guards(one: &Explained, report: &ServerReport, moment: &Moment) -> Vec<String> {
    let sentence = |guard: &Guard| {
        let reason = guard.reason();
        let whom = report.guarded_by.iter().find(|step| step.by == reason.name);
        let says = whom.map_or_else(|| reason.says.to_owned(), |step| reached(step, moment));
        match one.exempted_by.as_ref().filter(|_| *guard == Guard::ExemptRule) {
            Some(ExemptedBy { rule, place, spared: true }) => {
                let name = text::quoted(rule);
                format!("{says} It is in {place}. To take it back: sudo orphand spare --remove={name}")
            }
            Some(ExemptedBy { place, .. }) => format!("{says} It is in {place}. {}", reason.changes),
            None => format!("{says} {}", reason.changes),
        }
    };
    report.guards.iter().map(sentence).collect()
}

fn state(one: &Explained) -> &'static str {
    match (&one.report, one.taken_for) {
        (Some(report), _) => report.state.word(),
        (None, TakenFor::Agent) => "agent",
        _ if one.nothing.as_ref().is_some_and(|why| why.reason == NoServer::Unread) => "not known",
        (None, _) => "nothing",
    }
}

fn line(one: &Explained, moment: &Moment) -> Vec<String> {
    let own = format!("{} pid {} (this one)", moment.boot_time(one.id().born()), one.process.pid);
    let creators = one.creators.iter().map(|creator| creator_line(creator, moment));
    std::iter::once(own).chain(creators).collect()
}

fn creator_line(creator: &Creator, moment: &Moment) -> String {
    let program = creator.program.as_deref().unwrap_or("a program that is not known");
    let user = creator.uid.map(|uid| format!(", {}", moment.user(uid))).unwrap_or_default();
    let how = if creator.witnessed { "created by" } else { "child of" };
    let end = match (creator.alive, creator.exited) {
        (_, Some(at)) => format!(", exited {}", moment.boot_time(at)),
        (Some(false), None) => ", has exited".to_owned(),
        (Some(true), None) => String::new(),
        (None, None) => ", may have exited".to_owned(),
    };
    let ProcessId { pid, .. } = creator.id;
    let born = moment.boot_time(creator.id.born());
    format!("{born} {how} pid {pid} ({}{user}){end}", text::sanitise(program))
}

/// One step of the path by which it is reached.
fn reached(step: &ReachedBy, moment: &Moment) -> String {
    let began = step.start.map(|start| format!("started {}", moment.boot_time(BootTime::of_ticks(start))));
    let program = step.program.as_deref().map(text::clean);
    let user = step.user.map(|uid| moment.user(uid));
    let known: Vec<String> = [program, user, began].into_iter().flatten().collect();
    let who = match step.pid {
        Some(pid) if known.is_empty() => format!("pid {pid}"),
        Some(pid) => format!("pid {pid} ({})", known.join(", ")),
        None => "Somebody who cannot be seen".to_owned(),
    };
    format!("{who} {}{}.", text::sanitise(&step.via), far(step.to))
}

/// Whom `it` means, if that is not the server.
fn far(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (it: pid {pid})")).unwrap_or_default()
}

fn kept(one: &Kept) -> String {
    let far = far(one.pid);
    let [name, id, via] = [&one.name, &one.id, &one.via].map(|word| text::sanitise(word));
    format!("{name} ({id}) may still be used: this process {via}{far}.")
}

fn fields(one: &Explained, asked_daemon: bool, moment: &Moment) -> Value {
    let time = |at: BootTime| moment.wall.rfc3339(at);
    let none = ServerReport::default();
    let report = one.report.as_deref();
    let known = report.unwrap_or(&none);
    let rule = report.map(|report| report.server.rule.as_str()).filter(|_| one.agent.is_none());
    json!({
        "id": one.id().to_string(),
        "process": one.process,
        "started": time(one.id().born()),
        "taken_for": one.taken_for,
        "state": state(one),
        "name": what::name(one),
        "rule": rule.or(one.rule.as_deref()),
        "recognised_by": rule.map(recognised_by),
        "nothing": one.nothing,
        "agent": one.agent,
        "servers": one.servers,
        "server": report.map(|report| &report.server),
        "owner": one.owner,
        "owner_exited": one.owner_exited.map(time),
        "cause": one.cause,
        "since": one.since.map(time),
        "says": what::sentences(one, moment),
        "creators": one.creators.iter().map(|creator| json!({
            "pid": creator.id.pid,
            "start": creator.id.start,
            "program": creator.program,
            "uid": creator.uid,
            "alive": creator.alive,
            "exited": creator.exited.map(time),
            "witnessed": creator.witnessed,
        })).collect::<Vec<_>>(),
        "reached_by": known.reached_by,
        "evidence": known.evidence.iter().map(|one| one.reason()).collect::<Vec<_>>(),
        "doubts": known.doubts.iter().map(|one| one.reason()).collect::<Vec<_>>(),
        "guards": known.guards.iter().map(|one| one.reason()).collect::<Vec<_>>(),
        "guarded_by": known.guarded_by,
        "keeps": one.keeps,
        "listens": one.holdings.listens,
        "locks": one.holdings.locks,
        "rss_bytes": known.server.rss_bytes,
        "pss_bytes": known.pss_bytes,
        "next": {
            "step": one.next,
            "at": one.due.map(time),
            "in_ms": one.due.map(|due| u64::try_from(due.since(moment.now).as_millis()).unwrap_or(u64::MAX)),
            "says": next::sentences(one, asked_daemon, moment),
        },
        "commands": next::commands(one).into_iter().map(|(command, _)| command).collect::<Vec<_>>(),
    })
}

pub const WIDTH: usize = 80;

/// What is said of one process: sections of a heading and its paragraphs. One without paragraphs is not shown.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) sections: Vec<(&'static str, Vec<String>)>,
}

/// The pages, one after the other, and notes about all of them.
pub(super) fn lay_out(pages: &[Page], notes: &[String], width: Option<usize>, paint: Paint) -> String {
    let fold = |text: &str, first: &str, others: &str| match width {
        Some(width) => wrap(text, width, first, others),
        None => vec![format!("{first}{text}")],
    };
    let block = |page: &Page| {
        let mut block = String::new();
        for line in fold(&page.title, "", "  ") {
            block += &paint.line(paint::NAME, line);
        }
        for (heading, paragraphs) in page.sections.iter().filter(|(_, paragraphs)| !paragraphs.is_empty()) {
            block += &["\n", &paint.line(paint::DIM, heading)].concat();
            // A line feed within a paragraph begins a new line further in.
            for (nth, part) in paragraphs.iter().flat_map(|paragraph| paragraph.split('\n').enumerate()) {
                let (indent, others) = if nth == 0 { ("  ", "    ") } else { ("      ", "      ") };
                block += &(fold(part, indent, others).join("\n") + "\n");
            }
        }
        block
    };
    let notes = notes.iter().map(|note| fold(note, "", "").join("\n") + "\n");
    pages.iter().map(block).chain(notes).collect::<Vec<_>>().join("\n")
}

/// Breaks a text between words. A word that is too long for a line has one of its own.
fn wrap(text: &str, width: usize, first: &str, others: &str) -> Vec<String> {
    let indented = Options::new(width).initial_indent(first).subsequent_indent(others);
    let options = indented.break_words(false).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

//! `orphand explain`: facts about a process, or about one that has ended, as sentences and as JSON. Pure: the facts
//! come from the engine, the store and /proc, and are put together elsewhere.
//!
//! Invariant: no line of the text is longer than 80 columns, but for a single word or a command that is.

mod layout;
mod next;
mod past;
mod reasons;
mod report;
#[cfg(test)]
mod tests;
mod what;

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use self::layout::{Page, Section};
pub use self::report::report;
use crate::sink::{paint::Paint, wall_clock::WallClock};
use orphand_core::model::{
    BootTime, Creator, Explained, PastOrphan, ProcessId, ReachedBy, ServerReport, TakenFor, recognised_by,
    text,
};

/// What is said where no daemon answers.
pub const ALONE: &str = "No daemon was asked. This is one look through /proc, which cannot know who created what \
has exited, when an owner exited, or what a daemon would do next.";

/// All that was found out about what a person asked for.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// Living processes.
    pub living: Vec<Explained>,
    /// What was judged and is not there any more, the latest last.
    pub ended: Vec<PastOrphan>,
    /// Whether a daemon answered.
    pub asked_daemon: bool,
    /// What could not be seen, one sentence each.
    pub blind: Vec<String>,
}

/// When and for whom facts are told.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The present time.
    pub now: BootTime,
    /// Leads from the boot clock to the wall clock.
    pub wall: WallClock,
    /// The time zone of the reader.
    pub zone: TimeZone,
    /// The names of users.
    pub users: BTreeMap<u32, String>,
}

impl Moment {
    /// A time as people read it.
    fn time(&self, at: Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    fn boot_time(&self, at: BootTime) -> String {
        self.time(self.wall.timestamp(at))
    }

    fn user(&self, uid: u32) -> String {
        self.users.get(&uid).map_or_else(|| format!("uid {uid}"), |name| text::sanitise(name).into_owned())
    }

    /// How long it is until then, as text; `now` if it has passed.
    fn until(&self, at: BootTime) -> String {
        match at.since(self.now) {
            left if left.is_zero() => "now".to_owned(),
            left => format!("in {}", text::duration(left)),
        }
    }
}

/// The explanation as text.
pub fn render(all: &Explanation, moment: &Moment, paint: Paint) -> String {
    let mut pages: Vec<Page> = all.living.iter().map(|one| page(one, all.asked_daemon, moment)).collect();
    pages.extend(all.ended.iter().map(|one| past::page(one, moment)));
    let mut notes: Vec<String> = Vec::new();
    if !all.asked_daemon && !all.living.is_empty() {
        notes.push(ALONE.to_owned());
    }
    notes.extend(all.blind.iter().map(|why| format!("Could not be seen: {}.", text::sanitise(why))));
    layout::render(&pages, &notes, paint)
}

/// The explanation as JSON.
pub fn json(all: &Explanation, moment: &Moment) -> Value {
    json!({
        "source": if all.asked_daemon { "daemon" } else { "proc" },
        "blind": all.blind,
        "explained": all.living.iter().map(|one| fields(one, all.asked_daemon, moment)).collect::<Vec<_>>(),
        "ended": all.ended.iter().map(past::fields).collect::<Vec<_>>(),
    })
}

fn page(one: &Explained, asked_daemon: bool, moment: &Moment) -> Page {
    let report = one.report.as_deref();
    let mut sections = vec![Section::new("What it is", what::sentences(one, moment))];
    sections.push(Section::new("Where it comes from", line(one, moment)));
    if let Some(report) = report {
        sections.push(Section::new("Who can reach it", path(&report.reached_by, moment)));
        sections.push(Section::new("Evidence", reasons::evidence(&report.evidence)));
        sections.push(Section::new("Doubts", reasons::doubts(&report.doubts)));
        sections.push(Section::new("Guards", reasons::guards(&report.guards)));
    }
    sections.push(Section::new("What happens next", next::sentences(one, asked_daemon, moment)));
    let commands = next::commands(one).into_iter().map(|(command, what)| format!("{command}\n{what}"));
    sections.push(Section::new("What you can type", commands.collect()));
    Page { title: title(one), sections }
}

/// `fake-mcp-server (pid 4711): unproven`.
fn title(one: &Explained) -> String {
    let name = what::name(one);
    format!("{} (pid {}): {}", text::sanitise(&name), one.process.pid, state(one))
}

fn state(one: &Explained) -> &'static str {
    match (&one.report, one.taken_for) {
        (Some(report), _) => report.state.word(),
        (None, TakenFor::Agent) => "agent",
        (None, _) => "nothing",
    }
}

/// The process and its creators, one line each.
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

/// The path by which it is reached, from the one that reaches it to somebody who acts by himself.
fn path(steps: &[ReachedBy], moment: &Moment) -> Vec<String> {
    let nearer = steps.iter().skip(1).map(Some).chain([None]);
    let steps: Vec<(&ReachedBy, Option<&ReachedBy>)> = steps.iter().zip(nearer).collect();
    steps.into_iter().rev().map(|(step, nearer)| reached(step, nearer, moment)).collect()
}

/// One step of the path. `nearer`: what is reached by it, if that is not the process itself.
fn reached(step: &ReachedBy, nearer: Option<&ReachedBy>, moment: &Moment) -> String {
    let began = step.start.map(|start| format!("started {}", moment.boot_time(BootTime::of_ticks(start))));
    let program = step.program.as_deref().map(|program| text::sanitise(program).into_owned());
    let user = step.user.map(|uid| moment.user(uid));
    let known: Vec<String> = [program, user, began].into_iter().flatten().collect();
    let who = match step.pid {
        Some(pid) if known.is_empty() => format!("pid {pid}"),
        Some(pid) => format!("pid {pid} ({})", known.join(", ")),
        None => "Somebody who cannot be seen".to_owned(),
    };
    let what = match nearer.map(|nearer| nearer.pid) {
        None => String::new(),
        Some(Some(pid)) => format!(" (it: pid {pid})"),
        Some(None) => " (it: the one before)".to_owned(),
    };
    format!("{who} {}{what}.", text::sanitise(&step.via))
}

fn fields(one: &Explained, asked_daemon: bool, moment: &Moment) -> Value {
    let time = |at: BootTime| moment.wall.rfc3339(at);
    let report = one.report.as_deref();
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
        "reached_by": report.map(|report| &report.reached_by).into_iter().flatten().collect::<Vec<_>>(),
        "evidence": report.map(|report| reasons::evidence_fields(&report.evidence)).unwrap_or_default(),
        "doubts": report.map(|report| reasons::doubt_fields(&report.doubts)).unwrap_or_default(),
        "guards": report.map(|report| reasons::guard_fields(&report.guards)).unwrap_or_default(),
        "listens": one.holdings.listens,
        "locks": one.holdings.locks,
        "rss_bytes": report.and_then(|report| report.server.rss_bytes),
        "pss_bytes": report.and_then(|report: &ServerReport| report.pss_bytes),
        "next": {
            "step": one.next,
            "at": one.due.map(time),
            "in_ms": one.due.map(|due| u64::try_from(due.since(moment.now).as_millis()).unwrap_or(u64::MAX)),
            "says": next::sentences(one, asked_daemon, moment),
        },
        "commands": next::commands(one).into_iter().map(|(command, _)| command).collect::<Vec<_>>(),
    })
}

//! Looks at the host and asks the daemon, on a thread of its own: a slow answer holds up no key. Another one hears events.

use std::{
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use jiff::Timestamp;

use super::{News, Shell, Tell, dialog::Dialog};
use crate::{
    cli::Places,
    commands::{explain, offline},
    control::client::{Client, ClientError},
    events::{EventLine, EventQuery},
    os::{self, clock},
    probe::Probe,
    sink::{
        history::{self, Watched},
        human::Text,
        list::Sample,
        paint::Paint,
        wall_clock::WallClock,
    },
};
use orphand_core::model::{Asked, History, HistoryQuery, Holdings, ReapRequest, Report, ServerReport, State};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Events from so long before the start are shown, too.
const EARLIER: Duration = Duration::from_secs(60 * 60);

/// Between two tries to listen to a daemon that is not there.
const LISTEN_AGAIN: Duration = Duration::from_secs(2);

/// Between two looks through /proc, each of which costs as much as `orphand ps --no-daemon`.
const PROC_AGAIN: Duration = Duration::from_secs(20);

/// Between two questions about freed memory, which the store answers: it reads all of the day for that.
const FREED_AGAIN: Duration = Duration::from_secs(60);

/// Of how many servers the ports are read at each look.
const PORTS: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A look at the host.
    Look,
    Plan(ReapRequest),
    Reap(ReapRequest),
    History,
    Explain(Asked),
}

struct Worker {
    client: Client,
    places: Places,
    freed: Option<(Instant, String)>,
    /// When it looked through /proc last; absent if a daemon has answered since.
    alone: Option<Instant>,
    tell: Sender<News>,
}

/// Starts the threads. They end when nobody listens any more.
pub(super) fn start(places: Places, tell: Sender<News>) -> anyhow::Result<Sender<Ask>> {
    let (ask, asked) = channel();
    let client = Client::new(places.socket());
    let (listener, hear) = (client.clone(), tell.clone());
    let mut worker = Worker { client, places, freed: None, alone: None, tell: tell.clone() };
    let run = move || {
        for question in asked {
            let failed = |error| -> Tell { Box::new(move |shell| shell.state.failed(format!("{error:#}"))) };
            if tell.send(News::Told(worker.answer(question).unwrap_or_else(failed))).is_err() {
                return;
            }
        }
    };
    os::start("looks", run).context("cannot start a thread")?;
    os::start("events", move || listen(&listener, &hear)).context("cannot start a thread")?;
    Ok(ask)
}

/// Tells each event of the last hour and from now on, whichever daemon it comes from.
fn listen(client: &Client, tell: &Sender<News>) {
    let mut text = Text::new(WallClock::default(), clock::zone(), Paint::new(false));
    let mut since = Timestamp::now().checked_sub(EARLIER).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut is_told = false;
    loop {
        let query = EventQuery { since: Some(since), follow: true, ..EventQuery::default() };
        let stream = client.events(query);
        if let Err(why @ ClientError::Response { .. }) = &stream
            && !std::mem::replace(&mut is_told, true)
        {
            let line = format!("no events here: {why}");
            let told = tell.send(News::Told(Box::new(move |shell| shell.heard(line))));
            if told.is_err() {
                return;
            }
        }
        // What is missed until there is a place comes then.
        let has_begun = stream.is_ok();
        for line in stream.into_iter().flatten() {
            let Some(event) = EventLine::read(&line) else { continue };
            text.wall = event.wall;
            let time = event.wall.timestamp(event.at).to_zoned(text.zone.clone());
            let line = format!("{}  {}", time.strftime("%H:%M:%S"), text.plain(event.at, &event.notice));
            if tell.send(News::Told(Box::new(move |shell| shell.heard(line)))).is_err() {
                return;
            }
        }
        if has_begun {
            (since, is_told) = (Timestamp::now(), false);
        }
        thread::sleep(LISTEN_AGAIN);
    }
}

/// Adds the ports of what lost its owner. What may not be read has none.
fn read_ports(report: &mut Report) {
    let Ok(probe) = Probe::new() else { return };
    let unread =
        |server: &&mut ServerReport| server.state != State::Live && server.holdings == Holdings::default();
    for server in report.servers_mut().filter(unread).take(PORTS) {
        server.holdings = probe.holdings(&server.server.ids());
    }
}

impl Worker {
    /// What the answer does to the view.
    fn answer(&mut self, question: Ask) -> anyhow::Result<Tell> {
        Ok(match question {
            Ask::Look => match self.look() {
                Ok(Some(sample)) => Box::new(|shell| shell.looked(sample)),
                Ok(None) => Box::new(Shell::look_again),
                Err(error) => Box::new(move |shell| shell.saw_nothing(format!("{error:#}"))),
            },
            Ask::Plan(request) => {
                let planned = self.client.plan(request.clone())?;
                Box::new(move |shell| shell.state.planned(&request, planned))
            }
            Ask::Reap(request) => {
                let planned = self.client.reap(request)?;
                Box::new(move |shell| shell.reaping(&planned))
            }
            Ask::History => {
                let past = self.past()?;
                let (watched, zone) = (Watched::Now(jiff::Timestamp::now()), clock::zone());
                let text = history::render(&past, watched, &zone, Paint::new(false));
                Box::new(move |shell| shell.state.read(Dialog::table("The last 24 hours", &text)))
            }
            Ask::Explain(process) => {
                let all = explain::gather(&self.places, &process)?;
                if all.living.is_empty() && all.ended.is_empty() {
                    bail!("{process} is gone");
                }
                let text = crate::explain::render(&all, &explain::moment(), None, Paint::new(false));
                Box::new(move |shell| shell.state.read(Dialog::text(&process.to_string(), &text)))
            }
        })
    }

    /// What the daemon's store has of the last day.
    fn past(&self) -> Result<History, ClientError> {
        let since = jiff::Timestamp::now().checked_sub(DAY).ok();
        self.client.history(HistoryQuery { since, ..HistoryQuery::default() })
    }

    /// What the daemon says, or /proc shows; nothing, if there is no daemon and it is not time to look there again.
    fn look(&mut self) -> anyhow::Result<Option<Sample>> {
        let mut sample = match offline::ask(&self.places)? {
            Ok(sample) => {
                self.alone = None;
                Sample { freed: self.freed(), ..sample }
            }
            Err(_) if self.alone.is_some_and(|looked| looked.elapsed() < PROC_AGAIN) => return Ok(None),
            Err(why) => {
                if self.alone.is_none() {
                    let without = offline::without(Some(&why));
                    // Nobody listens any more: the answer finds that.
                    let _ = self.tell.send(News::Told(Box::new(|shell| shell.state.alone(without))));
                }
                let report = offline::alone(&self.places, Some(&why))?;
                self.alone = Some(Instant::now());
                Sample { report, ..offline::without(Some(&why)) }
            }
        };
        read_ports(&mut sample.report);
        Ok(Some(sample))
    }

    /// What the runs of the last day freed, as the daemon's store has it.
    fn freed(&mut self) -> Option<String> {
        if let Some((when, freed)) = &self.freed
            && when.elapsed() < FREED_AGAIN
        {
            return Some(freed.clone());
        }
        let freed = self.past().ok()?.sum().freed();
        self.freed = Some((Instant::now(), freed.clone()));
        Some(freed)
    }
}

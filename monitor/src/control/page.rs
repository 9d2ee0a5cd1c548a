//! What is served over HTTP: metrics, health, the web page and what it reads: the present state, the past, and a stream
//! of both events and states.
//!
//! Invariant: what the daemon's loop is asked does not depend on how many pages are open, or who scrapes. There is one
//! question for all of them; the past is read from the store, and that, too, once for all.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{
    connections::Client,
    http::{Answer, Body, Request},
    live::{Live, message},
    loop_handle::LoopHandle,
};
use crate::{
    events::Latest,
    os::clock,
    sink::{
        metrics::{Exposition, Metrics},
        page::{Page, Range, document},
    },
    store::history,
};
use orphand_core::model::{Status, text::sanitise};

/// A status of this age is used again. So requests of any user cost the loop at most twenty answers a second.
const STATUS_AGE: Duration = Duration::from_millis(50);
/// A state of this age is told again.
const STATE_AGE: Duration = Duration::from_secs(1);
/// The time between two states for open pages while nothing happens.
const TICK: Duration = Duration::from_secs(5);
/// How long events are gathered into one message.
const GATHER: Duration = Duration::from_millis(100);
/// A past is told again for this long, and for this many times the time it took to read: 5 % of a processor at most.
const PAST_AGE: Duration = Duration::from_secs(5);
const PAST_REST: u32 = 20;

const OK: &str = "200 OK";
const UNAVAILABLE: &str = "503 Service Unavailable";
const INTERNAL: &str = "500 Internal Server Error";
const JSON: &str = "application/json";

type Answered = Result<Arc<Status>, String>;

#[derive(Debug)]
pub(super) struct Site {
    daemon_loop: LoopHandle,
    metrics: Metrics,
    page: Page,
    live: Live,
    /// Locked while a new one is fetched, so that there is one query at a time.
    status: Mutex<Option<Known<Answered>>>,
    state: Mutex<Option<Known<Arc<Value>>>>,
    past: Mutex<BTreeMap<Range, Known<Arc<str>>>>,
}

/// What was told last, and until when it is told again.
type Known<T> = (Instant, T);

fn fresh<T: Clone>(known: Option<&Known<T>>) -> Option<T> {
    known.filter(|(until, _)| Instant::now() < *until).map(|(_, told)| told.clone())
}

impl Site {
    pub(super) fn new(daemon_loop: LoopHandle, metrics: Metrics, events: Latest) -> Self {
        Self {
            daemon_loop,
            metrics,
            page: Page::new(events.wall()),
            live: Live::new(events),
            status: Mutex::default(),
            state: Mutex::default(),
            past: Mutex::default(),
        }
    }

    pub(super) async fn answer(&self, client: Client, request: &Request) -> Answer {
        match request.path.as_str() {
            "/" => show(),
            "/metrics" => self.scrape(&request.accept).await,
            "/healthz" => self.health().await,
            // A page of another site cannot read the answers. It must not be able to open streams either.
            "/api/now" | "/api/history" | "/events" if request.of_other_site => {
                Answer::text("403 Forbidden", "this is for orphand's own page\n")
            }
            "/api/now" => self.now().await,
            "/api/history" => match request.query.strip_prefix("range=").and_then(Range::named) {
                Some(range) => self.past(range).await,
                None => Answer::text("400 Bad Request", "range is one of 10m, 1h, 6h, 24h, 7d, 30d\n"),
            },
            "/events" => match self.live.join(client, self.state_message().await) {
                Some(stream) => {
                    Answer { body: Body::Stream(stream), ..Answer::of(OK, "text/event-stream", "") }
                }
                None => refusal("too many pages are open"),
            },
            _ => Answer::text("404 Not Found", "this is orphand: see /, /metrics and /healthz\n"),
        }
    }

    async fn status(&self) -> Answered {
        let mut last = self.status.lock().await;
        if let Some(answer) = fresh(last.as_ref()) {
            return answer;
        }
        let answer = self.daemon_loop.status(false).await.map(Arc::new);
        *last = Some((Instant::now() + STATUS_AGE, answer.clone()));
        answer
    }

    async fn scrape(&self, accept: &str) -> Answer {
        let exposition = Exposition::of_accept(accept);
        // Without a status, the metrics only say that the daemon does not watch.
        let status = self.status().await.ok();
        Answer::of(OK, exposition.content_type(), self.metrics.render(status.as_deref(), exposition))
    }

    async fn health(&self) -> Answer {
        let why = match self.status().await {
            Ok(status) if status.is_watching() => return Answer::text(OK, "ok\n"),
            Ok(status) => status.blind.join("; "),
            Err(error) => error,
        };
        Answer::text(UNAVAILABLE, format!("{}\n", sanitise(&why)))
    }

    async fn now(&self) -> Answer {
        self.state().await.map_or_else(|why| refusal(&why), |state| Answer::of(OK, JSON, state.to_string()))
    }

    async fn state(&self) -> Result<Arc<Value>, String> {
        let mut last = self.state.lock().await;
        if let Some(state) = fresh(last.as_ref()) {
            return Ok(state);
        }
        let status = self.status().await?;
        let state = Arc::new(self.page.snapshot(&status, clock::now()));
        *last = Some((Instant::now() + STATE_AGE, Arc::clone(&state)));
        Ok(state)
    }

    /// The state as a message, or that there is none, and why.
    async fn state_message(&self) -> Arc<str> {
        match self.state().await {
            Ok(state) => message("now", &state),
            Err(error) => message("blind", &json!({ "why": error })),
        }
    }

    async fn past(&self, range: Range) -> Answer {
        let mut known = self.past.lock().await;
        if let Some(json) = fresh(known.get(&range)) {
            return Answer::of(OK, JSON, json);
        }
        let began = Instant::now();
        let question = self.page.question(range, clock::now());
        let line = self.daemon_loop.read_store(move |dir| history::timeline(dir, &question)).await;
        let json = line.map(|line| self.page.past(&question, line).to_string());
        match json {
            Ok(json) => {
                let (rest, json) = (PAST_AGE.max(began.elapsed() * PAST_REST), Arc::from(json));
                known.insert(range, (Instant::now() + rest, Arc::clone(&json)));
                Answer::of(OK, JSON, json)
            }
            Err(error) => {
                tracing::debug!("the page cannot show the past: {error}");
                refusal("the history cannot be read now")
            }
        }
    }

    /// Tells open pages of events, and how things stand. While no page is open, the loop is asked nothing.
    pub(super) async fn update(&self, mut news: watch::Receiver<u64>) {
        let mut told = Instant::now();
        let mut changed = false;
        loop {
            let due = told + if changed { STATE_AGE } else { TICK };
            tokio::select! {
                Ok(()) = news.changed() => {
                    sleep(GATHER).await;
                    news.mark_unchanged();
                    self.live.tell();
                    changed = true;
                }
                () = sleep_until(due), if self.live.has_readers() => {
                    self.live.send(&self.state_message().await);
                    (told, changed) = (Instant::now(), false);
                }
                () = self.live.joined.notified() => {}
            }
        }
    }
}

fn show() -> Answer {
    let mut nonce = [0; 16];
    if getrandom(&mut nonce, GetRandomFlags::empty()) != Ok(nonce.len()) {
        return Answer::text(INTERNAL, "no random numbers\n");
    }
    let (text, policy) = document(nonce);
    let headers = format!("content-security-policy: {policy}\r\nreferrer-policy: no-referrer\r\n");
    Answer { headers, ..Answer::of(OK, "text/html; charset=utf-8", text) }
}

fn refusal(why: &str) -> Answer {
    Answer::of(UNAVAILABLE, JSON, json!({ "error": why }).to_string())
}

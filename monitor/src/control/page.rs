//! The web page and what it reads: the present state, the past, and a stream of both events and states.
//!
//! Invariant: what the daemon's loop is asked does not depend on how many pages are open. There is one question for
//! all of them, once a second at most; the past is read from the store, and that, too, once for all.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderName, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::body::Bytes;
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::json;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, sleep_until},
};

use super::{
    http::Shared,
    live::{Live, message},
    loop_handle::QueryError,
};
use crate::{
    os::clock,
    sink::page::{Feed, Page, Range, Snapshot, document},
};

/// Where the stream is.
pub(super) const EVENTS: &str = "/events";

/// A state of this age is told again.
const STATE_AGE: Duration = Duration::from_secs(1);
/// The time between two states for open pages while nothing happens.
const TICK: Duration = Duration::from_secs(5);
/// How long events are gathered into one message.
const GATHER: Duration = Duration::from_millis(100);
/// A past of this age is told again, and of the time that it took to read this many times: so pages cost the
/// processor 5 % of its time at most, however large the store is.
const PAST_AGE: Duration = Duration::from_secs(5);
const PAST_REST: u32 = 20;

/// What all pages share.
#[derive(Debug)]
struct Pages {
    shared: Arc<Shared>,
    page: Page,
    live: Live,
    /// The last state, when it was taken. Locked while it is asked for.
    state: Mutex<Option<(Instant, Arc<Snapshot>)>>,
    /// The last answers about the past, each with the time until which it is told again.
    past: Mutex<BTreeMap<Range, (Instant, Bytes)>>,
}

/// The routes, and what keeps open pages up to date.
pub(super) fn router(shared: Arc<Shared>, page: Page) -> (Router, impl Future<Output = ()>) {
    let feed = page.hear();
    let pages =
        Pages { shared, page, live: Live::default(), state: Mutex::default(), past: Mutex::default() };
    let pages = Arc::new(pages);
    let read = Router::new()
        .route("/api/now", get(now))
        .route("/api/history", get(past))
        .route(EVENTS, get(events))
        .layer(middleware::from_fn(refuse_other_sites));
    let router = Router::new().route("/", get(show)).merge(read).with_state(Arc::clone(&pages));
    (router, update(pages, feed))
}

impl Pages {
    async fn state(&self) -> Result<Arc<Snapshot>, QueryError> {
        let mut last = self.state.lock().await;
        if let Some((at, state)) = &*last
            && at.elapsed() < STATE_AGE
        {
            return Ok(Arc::clone(state));
        }
        let status = self.shared.status().await?;
        let state = Arc::new(self.page.snapshot(&status, clock::now()));
        *last = Some((Instant::now(), Arc::clone(&state)));
        Ok(state)
    }

    /// The state as a message, or that there is none, and why.
    async fn state_message(&self) -> Bytes {
        match self.state().await {
            Ok(state) => message("now", &*state),
            Err(error) => message("blind", &json!({ "why": error.to_string() })),
        }
    }

    async fn past(&self, range: Range) -> Option<Bytes> {
        let mut known = self.past.lock().await;
        if let Some((until, bytes)) = known.get(&range)
            && Instant::now() < *until
        {
            return Some(bytes.clone());
        }
        let began = Instant::now();
        let question = self.page.question(range, clock::now());
        let line = self.shared.daemon_loop.timeline(question).await;
        let line =
            line.inspect_err(|error| tracing::debug!("the page cannot show the past: {error}")).ok()?;
        let bytes = Bytes::from(serde_json::to_string(&self.page.past(&question, line)).ok()?);
        let rest = PAST_AGE.max(began.elapsed() * PAST_REST);
        known.insert(range, (Instant::now() + rest, bytes.clone()));
        Some(bytes)
    }
}

/// Tells open pages of events, and how things stand: soon after an event, else now and then. While no page is open, the
/// loop is asked nothing.
async fn update(pages: Arc<Pages>, feed: Feed) {
    let mut told = Instant::now();
    let mut changed = false;
    loop {
        let due = told + if changed { STATE_AGE } else { TICK };
        let live = &pages.live;
        tokio::select! {
            () = feed.grown() => {
                sleep(GATHER).await;
                live.tell(feed.take());
                changed = true;
            }
            () = sleep_until(due), if live.has_readers() => {
                live.send(&pages.state_message().await);
                (told, changed) = (Instant::now(), false);
            }
            () = live.joined.notified() => {}
        }
    }
}

/// A page of another site cannot read the answers. It must not be able to open streams either.
async fn refuse_other_sites(request: Request, next: Next) -> Response {
    let site = request.headers().get("sec-fetch-site").map_or(&b"none"[..], |site| site.as_bytes());
    if !matches!(site, b"same-origin" | b"none") {
        return (StatusCode::FORBIDDEN, "this is for orphand's own page\n").into_response();
    }
    next.run(request).await
}

const NO_STORE: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");
const NO_SNIFF: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");
const OWN_SITE: (HeaderName, &str) = (HeaderName::from_static("cross-origin-resource-policy"), "same-origin");

async fn show() -> Response {
    let mut nonce = [0; 16];
    if getrandom(&mut nonce, GetRandomFlags::empty()) != Ok(nonce.len()) {
        return (StatusCode::INTERNAL_SERVER_ERROR, "no random numbers\n").into_response();
    }
    let (text, policy) = document(nonce);
    let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    let more =
        [(header::CONTENT_SECURITY_POLICY, policy), (header::REFERRER_POLICY, "no-referrer".to_owned())];
    ([kind, NO_STORE, NO_SNIFF, OWN_SITE], more, text).into_response()
}

async fn now(State(pages): State<Arc<Pages>>) -> Response {
    match pages.state().await {
        Ok(state) => match serde_json::to_string(&*state) {
            Ok(json) => answer(json.into()),
            Err(error) => refusal(&error.to_string()),
        },
        Err(error) => refusal(&error.to_string()),
    }
}

async fn past(State(pages): State<Arc<Pages>>, uri: Uri) -> Response {
    let range = uri.query().and_then(|query| query.strip_prefix("range=")).and_then(Range::named);
    let Some(range) = range else {
        return (StatusCode::BAD_REQUEST, "range is one of 10m, 1h, 6h, 24h, 7d, 30d\n").into_response();
    };
    match pages.past(range).await {
        Some(bytes) => answer(bytes),
        None => refusal("the history cannot be read now"),
    }
}

async fn events(State(pages): State<Arc<Pages>>) -> Response {
    let first = pages.state_message().await;
    let Some(stream) = pages.live.join(first) else { return refusal("too many pages are open") };
    let kind = (header::CONTENT_TYPE, "text/event-stream");
    ([kind, NO_STORE, NO_SNIFF, OWN_SITE], Body::new(stream)).into_response()
}

fn answer(json: Bytes) -> Response {
    let kind = (header::CONTENT_TYPE, "application/json");
    ([kind, NO_STORE, NO_SNIFF, OWN_SITE], json).into_response()
}

fn refusal(why: &str) -> Response {
    let mut response = answer(json!({ "error": why }).to_string().into());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

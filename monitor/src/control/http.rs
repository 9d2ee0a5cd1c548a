//! Serves HTTP: `/metrics` and `/healthz`.
//!
//! Limits: so many connections at a time, one request each, with a short head, within so much time. A scraper that stalls holds
//! one place until its time is up, or until somebody else needs it.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Request, StatusCode, header, uri::Authority},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{rt::TokioIo, rt::TokioTimer, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::yield_now,
    time::{Instant, sleep, timeout},
};

use super::{
    asker::{AskError, Asker},
    host,
    places::{Asked, Places},
};
use crate::sink::metrics::{Exposition, Metrics};
use orphand_core::model::{Status, text::sanitise};

/// Connections at a time. Who comes then takes the place of the one that has been there for longest, of those without a whole
/// head if there are such.
const CONNECTIONS: usize = 256;
/// Bytes of a head.
const HEAD_MAX: usize = 16 * 1024;
/// For the head of a request to be there.
const HEAD: Duration = Duration::from_secs(5);
/// For a request and its answer.
const LIFE: Duration = Duration::from_secs(10);
/// After a connection could not be taken (no descriptors).
const PAUSE: Duration = Duration::from_millis(100);

/// An answer this young serves the next one, too: whoever asks without end (anybody on this host may) costs the loop twenty
/// answers a second and no more.
const FRESH: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Shared {
    asker: Asker,
    metrics: Metrics,
    /// The last answer and when it came. Held while it is fetched: one question at a time.
    last: Mutex<Option<(Instant, Answered)>>,
}

type Answered = Result<Arc<Status>, AskError>;

impl Shared {
    async fn status(&self) -> Answered {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        let answer = self.asker.status(false).await.map(Arc::new);
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// What is served where.
pub(super) fn router(asker: Asker, metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(scrape)).route("/healthz", get(health)).with_state(Arc::new(Shared {
        asker,
        metrics,
        last: Mutex::default(),
    }))
}

/// Answers until the end of the runtime.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    // Elsewhere scrapers know us by any name, and whoever reaches us there needs no web page for it.
    let by_name = listener.local_addr().is_ok_and(|address| !address.ip().is_loopback());
    let mut places: Places<IpAddr> = Places::new(CONNECTIONS, CONNECTIONS, true);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                places.make_room(peer.ip());
                let (router, asked) = (router.clone(), Asked::default());
                let task = tokio::spawn(attend(stream, router, asked.clone(), by_name));
                places.take(peer.ip(), asked, &task);
                // Whoever asks at once is heard before somebody else can take its place.
                yield_now().await;
            }
            Err(error) => {
                tracing::warn!("cannot take a connection for metrics: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// One connection, one request. That it breaks is the peer's affair.
async fn attend(stream: TcpStream, router: Router, asked: Asked, by_name: bool) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        asked.set();
        let welcome = by_name || is_welcome(&request);
        let router = router.clone();
        async move { if welcome { router.call(request).await } else { Ok(misdirected()) } }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let _ = timeout(LIFE, connection).await;
}

/// Whether all names that it gives us are ours. No browser leaves them out.
fn is_welcome(request: &Request<Incoming>) -> bool {
    let named = request.headers().get_all(header::HOST).iter();
    let named = named.map(|host| host.to_str().unwrap_or_default());
    named.chain(request.uri().authority().map(Authority::as_str)).all(host::is_ours)
}

fn misdirected() -> Response {
    let why = "this orphand is asked by address or as localhost, not by another name\n";
    (StatusCode::MISDIRECTED_REQUEST, Body::from(why)).into_response()
}

async fn scrape(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let exposition = Exposition::of_accept(accept);
    // Without an answer nothing is claimed but that nobody watches.
    let status = shared.status().await.ok();
    match shared.metrics.render(status.as_deref(), exposition) {
        Ok(text) => ([(header::CONTENT_TYPE, exposition.content_type())], text).into_response(),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot encode: {error}\n")).into_response()
        }
    }
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    match shared.status().await {
        Ok(status) if status.is_watching() => "ok\n".into_response(),
        Ok(status) => unwell(&status.blind.join("; ")),
        Err(error) => unwell(&error.to_string()),
    }
}

fn unwell(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", sanitise(why))).into_response()
}

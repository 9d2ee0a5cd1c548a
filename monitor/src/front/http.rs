//! Serves HTTP: `/metrics` and `/healthz`.
//!
//! Limits: so many connections at a time, one request each, within so much time. A scraper that stalls holds one place until
//! its time is up.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, rt::TokioTimer, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, Semaphore},
    time::{Instant, sleep, timeout},
};

use super::asker::{AskError, Asker};
use crate::{
    model::Status,
    sink::metrics::{Exposition, Metrics},
};

/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS: usize = 32;
/// For the head of a request to be there.
const HEAD: Duration = Duration::from_secs(5);
/// For a request and its answer.
const LIFE: Duration = Duration::from_secs(30);
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
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    attend(stream, router).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("cannot take a connection for metrics: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// One connection, one request. That it breaks is the peer's affair.
async fn attend(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = timeout(LIFE, connection).await;
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
        Ok(status) if status.blind.is_empty() => "ok\n".into_response(),
        Ok(status) => unwell(&status.blind.join("; ")),
        Err(error) => unwell(&error.to_string()),
    }
}

fn unwell(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response()
}

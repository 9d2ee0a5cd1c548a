//! Serves `/metrics`, `/healthz` and the [page] over HTTP.
//!
//! Limits: the number of connections, one request each, the size of its head, and its time. A stalled scraper
//! keeps its connection until its time is up, or until another one needs it. The stream of a page may last; it ends
//! when what was sent is not taken, and when its connection is needed for another request.

use std::{
    net::IpAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

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
use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_user_timeout};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::yield_now,
    time::{Instant, sleep, timeout},
};

use super::{
    connections::{Connections, RequestRead},
    host_name,
    loop_handle::{LoopHandle, QueryError},
    page,
};
use crate::sink::{
    metrics::{Exposition, Metrics},
    page::Page,
};
use orphand_core::model::{Status, text::sanitise};

/// The most connections at a time. A new one replaces the oldest, preferably one without a complete head.
const CONNECTIONS: usize = 256;
/// The size limit of a request's head in bytes.
const HEAD_MAX: usize = 16 * 1024;
/// The timeout for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout for a request and its answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for the stream of a page, which then connects again.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// How many bytes of an answer the kernel keeps for who does not take them.
const SEND_BUFFER: usize = 256 * 1024;
/// The pause after a connection could not be accepted, for instance because no descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A status of this age is used again. So requests of any user cost the loop at most twenty answers a second.
const CACHE_TIME: Duration = Duration::from_millis(50);

/// What all requests share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) daemon_loop: LoopHandle,
    metrics: Metrics,
    /// The last status and its time. Locked while a new one is fetched, so that there is one query at a time.
    last: Mutex<Option<(Instant, Answered)>>,
}

pub(super) type Answered = Result<Arc<Status>, QueryError>;

impl Shared {
    pub(super) async fn status(&self) -> Answered {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < CACHE_TIME
        {
            return answer.clone();
        }
        let answer = self.daemon_loop.status(false).await.map(Arc::new);
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// The routes. The future keeps pages up to date.
pub(super) fn router(
    daemon_loop: LoopHandle,
    metrics: Metrics,
    page: Page,
) -> (Router, impl Future<Output = ()>) {
    let shared = Arc::new(Shared { daemon_loop, metrics, last: Mutex::default() });
    let (pages, updates) = page::router(Arc::clone(&shared), page);
    let router = Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(health))
        .with_state(shared)
        .merge(pages)
        .fallback(async || (StatusCode::NOT_FOUND, "this is orphand: see /, /metrics and /healthz\n"));
    (router, updates)
}

/// Serves connections until the runtime ends.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    // On other addresses scrapers may use any name, and a client that can reach them does not need a web page
    // for it.
    let any_name = listener.local_addr().is_ok_and(|address| !address.ip().is_loopback());
    let mut connections: Connections<IpAddr> = Connections::new(CONNECTIONS, CONNECTIONS, true);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                connections.make_room(peer.ip());
                let (router, asked) = (router.clone(), RequestRead::default());
                let task = tokio::spawn(serve_connection(stream, router, asked.clone(), any_name));
                connections.insert(peer.ip(), asked, &task);
                // A client that sends its request at once is read before another one can replace it.
                yield_now().await;
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection for metrics: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one request. Errors of the connection are ignored, because only the client is affected.
async fn serve_connection(stream: TcpStream, router: Router, asked: RequestRead, any_name: bool) {
    // A stalled reader is let go, whatever the other end says.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER);
    let _ = set_tcp_user_timeout(&stream, u32::try_from(CONNECTION_TIMEOUT.as_millis()).unwrap_or_default());
    let router = TowerToHyperService::new(router);
    let is_stream = Arc::new(AtomicBool::new(false));
    let lasts = Arc::clone(&is_stream);
    let service = service_fn(move |request: Request<Incoming>| {
        asked.set();
        lasts.store(request.uri().path() == page::EVENTS, Ordering::Relaxed);
        let allowed = any_name || names_this_host(&request);
        let router = router.clone();
        async move { if allowed { router.call(request).await } else { Ok(misdirected()) } }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    if timeout(CONNECTION_TIMEOUT, &mut connection).await.is_err() && is_stream.load(Ordering::Relaxed) {
        let _ = timeout(STREAM_TIMEOUT, connection).await;
    }
}

/// Whether all host names in the request mean this host. Every browser sends them.
fn names_this_host(request: &Request<Incoming>) -> bool {
    let named = request.headers().get_all(header::HOST).iter();
    let named = named.map(|host| host.to_str().unwrap_or_default());
    named.chain(request.uri().authority().map(Authority::as_str)).all(host_name::is_local)
}

fn misdirected() -> Response {
    let why = "use an IP address or localhost for this orphand, not another name\n";
    (StatusCode::MISDIRECTED_REQUEST, Body::from(why)).into_response()
}

async fn scrape(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let exposition = Exposition::of_accept(accept);
    // Without a status, the metrics only say that the daemon does not watch.
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
        Ok(status) => unhealthy(&status.blind.join("; ")),
        Err(error) => unhealthy(&error.to_string()),
    }
}

fn unhealthy(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", sanitise(why))).into_response()
}

//! HTTP/1.1, as much of it as [`super::page`] needs: one request without a body a connection, GET or HEAD, and its answer.
//! The head is parsed by `httparse`.
//!
//! Limits: the number of connections, one request each, the size of its head, and its time. A stalled scraper
//! keeps its connection until its time is up, or until another one needs it. The stream of a page may last; it ends
//! when what was sent is not taken, and when its connection is needed for another request.

use std::{
    io,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_user_timeout};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::Receiver,
    task::yield_now,
    time::{sleep, timeout},
};

use super::{
    connections::{ACCEPT_PAUSE, Client, Connections, RequestRead},
    page::Site,
};

/// The most connections at a time. A new one replaces the oldest, preferably one without a complete head.
const CONNECTIONS: usize = 256;
const HEAD_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 100;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for the stream of a page, which then connects again.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// How many bytes of an answer the kernel keeps for who does not take them.
const SEND_BUFFER: usize = 256 * 1024;

/// What every answer says: it is of now, it is what it says it is, and it is for no other site.
const ALWAYS: &str = "connection: close\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n\
                      cross-origin-resource-policy: same-origin\r\n";

#[derive(Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) query: String,
    pub(super) accept: String,
    /// Whether a page of another site asks, as its browser says.
    pub(super) of_other_site: bool,
    /// Whether all host names in it mean this host. Every browser sends them.
    names_this_host: bool,
    is_head: bool,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) media_type: &'static str,
    /// Further header lines, each with its end.
    pub(super) headers: String,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Whole(Arc<str>),
    /// It ends when its sender is dropped.
    Stream(Receiver<Arc<str>>),
}

impl Answer {
    pub(super) fn of(status: &'static str, media_type: &'static str, text: impl Into<Arc<str>>) -> Self {
        Self { status, media_type, headers: String::new(), body: Body::Whole(text.into()) }
    }

    pub(super) fn text(status: &'static str, text: impl Into<Arc<str>>) -> Self {
        Self::of(status, "text/plain; charset=utf-8", text)
    }
}

pub(super) async fn serve(listener: TcpListener, site: Arc<Site>) {
    // On other addresses scrapers may use any name; who can reach them needs no web page for it.
    let any_name = listener.local_addr().is_ok_and(|address| !address.ip().is_loopback());
    let mut connections = Connections::new(CONNECTIONS, CONNECTIONS, true);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let client = Client::of(&stream, peer);
                connections.make_room(client);
                let (site, asked) = (Arc::clone(&site), RequestRead::default());
                let read = asked.clone();
                let task = tokio::spawn(async move {
                    // Only the client is affected by an error of its connection.
                    let _ = serve_connection(stream, client, &site, &read, any_name).await;
                });
                connections.insert(client, asked, &task);
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

async fn serve_connection(
    mut stream: TcpStream,
    client: Client,
    site: &Site,
    asked: &RequestRead,
    any_name: bool,
) -> io::Result<()> {
    // A stalled reader is let go, whatever the other end says.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER);
    let _ = set_tcp_user_timeout(&stream, u32::try_from(ANSWER_TIMEOUT.as_millis()).unwrap_or_default());
    let request = timeout(HEAD_TIMEOUT, read_request(&mut stream)).await??;
    asked.store(true, Ordering::Relaxed);
    let is_head = request.as_ref().is_ok_and(|request| request.is_head);
    let answered = timeout(ANSWER_TIMEOUT, async {
        let answer = match request {
            Ok(request) if any_name || request.names_this_host => site.answer(client, &request).await,
            Ok(_) => {
                let why = "use an IP address or localhost for this orphand, not another name\n";
                Answer::text("421 Misdirected Request", why)
            }
            Err(status) => Answer::text(status, format!("{status}\n")),
        };
        let Answer { status, media_type, headers, body } = answer;
        let date =
            jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&jiff::Timestamp::now());
        let date = date.unwrap_or_default();
        let length = match &body {
            Body::Whole(text) => format!("content-length: {}\r\n", text.len()),
            Body::Stream(_) => String::new(),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ndate: {date}\r\ncontent-type: {media_type}\r\n{ALWAYS}{headers}{length}\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        match body {
            Body::Whole(text) if !is_head => stream.write_all(text.as_bytes()).await.map(|()| None),
            Body::Stream(messages) if !is_head => Ok(Some(messages)),
            Body::Whole(_) | Body::Stream(_) => io::Result::Ok(None),
        }
    });
    if let Some(messages) = answered.await?? {
        timeout(STREAM_TIMEOUT, send_stream(&mut stream, messages)).await??;
    }
    stream.shutdown().await
}

/// Sends what comes until nothing more comes, or the client goes.
async fn send_stream(stream: &mut TcpStream, mut messages: Receiver<Arc<str>>) -> io::Result<()> {
    let (mut client, mut out) = stream.split();
    let mut ignored = [0; 64];
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Some(message) => out.write_all(message.as_bytes()).await?,
                None => return Ok(()),
            },
            read = client.read(&mut ignored) => if read? == 0 { return Ok(()) },
        }
    }
}

/// Reads the head of a request; where it is none, the status to answer with.
async fn read_request(stream: &mut TcpStream) -> io::Result<Result<Request, &'static str>> {
    let mut head = Vec::new();
    loop {
        let before = head.len().saturating_sub(3);
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // A head that comes byte by byte is parsed once.
        let new = head.get(before..).unwrap_or_default();
        if new.windows(2).any(|end| end == b"\n\n") || new.windows(3).any(|end| end == b"\n\r\n") {
            return Ok(parse(&head));
        }
        if head.len() > HEAD_MAX {
            return Ok(Err("431 Request Header Fields Too Large"));
        }
    }
}

fn parse(head: &[u8]) -> Result<Request, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err("431 Request Header Fields Too Large"),
        Ok(httparse::Status::Partial) | Err(_) => return Err("400 Bad Request"),
    }
    let is_head = match parsed.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err("405 Method Not Allowed"),
    };
    let values = |name: &'static str| {
        let named = parsed.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        // What is no text is no name of this host, and nothing else that is looked for.
        named.map(|header| std::str::from_utf8(header.value).unwrap_or_default())
    };
    let target = parsed.path.unwrap_or_default();
    // As a proxy is asked: with the host before the path.
    let (host, target) = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
            let (host, _) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
            (Some(host), rest.get(host.len()..).unwrap_or_default())
        }
        _ => (None, target),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Request {
        path: path.to_owned(),
        query: query.to_owned(),
        accept: values("accept").next().unwrap_or_default().to_owned(),
        of_other_site: values("sec-fetch-site")
            .next()
            .is_some_and(|site| !matches!(site, "same-origin" | "none")),
        names_this_host: values("host").chain(host).all(is_local),
        is_head,
    })
}

const LOCAL_NAMES: [&str; 3] = ["localhost", "ip6-localhost", "ip6-loopback"];

/// Whether this `Host`, with or without a port, may be answered on a loopback address: an IP address, or one of `LOCAL_NAMES`.
pub(super) fn is_local(host: &str) -> bool {
    if let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    if host.parse::<IpAddr>().is_ok() || name.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    LOCAL_NAMES.contains(&name.as_str()) || name.ends_with(".localhost")
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for() {
        let read = |line: &str, more: &str| parse(format!("{line} HTTP/1.1\r\n{more}\r\n").as_bytes());
        let asked = read("GET /api/history?range=1h", "Host: localhost:9477\r\nACCEPT: a, b\r\n").unwrap();
        assert_eq!(
            (asked.path.as_str(), asked.query.as_str(), asked.accept.as_str()),
            ("/api/history", "range=1h", "a, b")
        );
        assert!(asked.names_this_host && !asked.is_head && !asked.of_other_site);
        assert!(
            read("HEAD /", "sec-fetch-site: cross-site\r\n")
                .is_ok_and(|asked| asked.is_head && asked.of_other_site)
        );
        // The name may be before the path, too, and each of several counts.
        for (line, more) in [
            ("GET http://rebind.example/metrics", "Host: localhost\r\n"),
            ("GET http://localhost@rebind.example?", ""),
            ("GET /", "Host: rebind.example\r\nHost: localhost\r\n"),
            ("GET /", "Host: \u{e4}\r\n"),
        ] {
            assert!(read(line, more).is_ok_and(|asked| !asked.names_this_host), "{line}");
        }
        let asked = read("GET http://127.0.0.1:1/metrics", "").unwrap();
        assert!(asked.names_this_host && asked.path == "/metrics");
        for (line, status) in [("POST /", "405"), ("GET", "400"), ("\0 /", "400")] {
            assert!(read(line, "").unwrap_err().starts_with(status), "{line}");
        }
        assert!(read("GET /", &"x: y\r\n".repeat(101)).unwrap_err().starts_with("431"));
    }

    mod host_name {
        use super::super::*;

        #[test]
        fn addresses_and_names_of_this_host() {
            for host in
                ["localhost", "LocalHost:9477", "localhost.", "a.localhost:1", "127.0.0.1:9477", "192.0.2.1"]
            {
                assert!(is_local(host), "{host}");
            }
            for host in ["[::1]:9477", "[::1]", "::1", "ip6-localhost:9477"] {
                assert!(is_local(host), "{host}");
            }
        }

        #[test]
        fn names_that_somebody_else_has() {
            for host in [
                "rebind.example",
                "rebind.example:9477",
                "localhost.example",
                "notlocalhost",
                "127.0.0.1.example",
                "localhost:9477.example",
                "[::1].example",
                "[rebind.example]",
                "",
                ":9477",
                "a b",
            ] {
                assert!(!is_local(host), "{host}");
            }
        }
    }
}

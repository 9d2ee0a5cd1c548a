//! The page over HTTP, with a loop that answers as a test wants.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    tests::{serve, server, status},
    *,
};
use orphand_core::model::Status;

/// Asks for a path with further header lines.
fn get(address: SocketAddr, path: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Opens the stream; its lines from the first message on.
fn stream(address: SocketAddr) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    BufReader::new(stream)
}

fn wait_for(lines: &mut impl BufRead, wanted: &str) -> String {
    let mut line = String::new();
    while !line.contains(wanted) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the stream ended before {wanted}");
    }
    line
}

#[test]
fn the_document_and_its_policy() {
    let mut server = server();
    server.answer(&[]);
    let (first, second) = (get(server.address, "/?range=6h", ""), get(server.address, "/", ""));
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("<title>orphand</title>"));
    let policy = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("content-security-policy: ")).unwrap();
        line.to_owned()
    };
    assert!(policy(&first).contains("default-src 'none'; script-src 'nonce-"), "{}", policy(&first));
    assert_ne!(policy(&first), policy(&second));
    for header in
        ["referrer-policy: no-referrer", "cache-control: no-store", "x-content-type-options: nosniff"]
    {
        assert!(first.contains(&format!("{header}\r\n")), "{header}");
    }
}

#[test]
fn the_present_and_the_past() {
    let mut server = server();
    server.answer(&[]);
    let now = get(server.address, "/api/now", "Sec-Fetch-Site: same-origin\r\n");
    assert!(now.starts_with("HTTP/1.1 200") && now.contains("\"watching\":true"), "{now}");
    // There is no store yet.
    let past = get(server.address, "/api/history?range=24h", "");
    assert!(past.starts_with("HTTP/1.1 200") && past.contains("\"series\":[]"), "{past}");
    for wrong in ["/api/history", "/api/history?range=1y", "/api/history?range=1h&range=6h"] {
        assert!(get(server.address, wrong, "").starts_with("HTTP/1.1 400"), "{wrong}");
    }
    for path in ["/api/now", "/api/history?range=1h", "/events"] {
        assert!(
            get(server.address, path, "Sec-Fetch-Site: cross-site\r\n").starts_with("HTTP/1.1 403"),
            "{path}"
        );
    }
    // Nobody can change anything.
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(stream, "POST /api/now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}

#[test]
fn a_loop_that_does_not_answer_is_told_to_the_page() {
    let server = server();
    let text = get(server.address, "/api/now", "");
    assert!(text.starts_with("HTTP/1.1 503") && text.contains("did not answer in time"), "{text}");
    wait_for(&mut stream(server.address), "did not answer in time");
}

#[test]
fn an_event_reaches_open_pages() {
    let mut server = server();
    server.answer(&[]);
    let mut open = stream(server.address);
    wait_for(&mut open, "event: now");
    server.stop(1);
    let line = wait_for(&mut open, "\"recent\":false");
    assert!(line.contains("orphans stay") && line.contains("\"id\":1"), "{line}");
    // A state follows an event, and who opens the page later is told of it, too.
    wait_for(&mut open, "event: now");
    let line = wait_for(&mut stream(server.address), "\"recent\":true");
    assert!(line.contains("orphans stay"), "{line}");
}

/// A hundred open pages, one of which takes nothing: the loop is asked once a second, not a hundred times.
#[test]
fn a_hundred_pages_are_one_question() {
    let mut server = server();
    let mut queries = server.queries.take().unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        while let Some(Query { reply, .. }) = queries.blocking_recv() {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = reply.send(Ok(status(Status::default())));
        }
    });
    let began = Instant::now();
    let mut open: Vec<_> = (0..100).map(|_| stream(server.address)).collect();
    for one in open.iter_mut().skip(1) {
        wait_for(one, "event: now");
    }
    for number in 1..=20 {
        server.stop(number);
        thread::sleep(Duration::from_millis(100));
    }
    for one in open.iter_mut().skip(1) {
        wait_for(one, "orphans stay");
    }
    let most = 2 + u32::try_from(began.elapsed().as_secs()).unwrap();
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked >= 1 && asked <= most, "{asked} questions, at most {most} expected");
    // Scrapes have room beside them.
    assert!(get(server.address, "/healthz", "").starts_with("HTTP/1.1 200"));
}

/// Any user may have it: the daemon starts, and takes it when it is free.
#[test]
fn a_port_that_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let control = ControlServer::bind(Some(address), &dir.path().join("control.sock"), None).unwrap();
    assert!(control.http.is_none());
    let mut server = serve(dir, control);
    server.answer(&[]);
    drop(taken);
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(address).is_err() && Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
    }
    assert!(get(address, "/metrics", "").contains("\norphand_watching 1"));
}

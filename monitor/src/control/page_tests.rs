//! The page over HTTP, with a loop that answers as a test wants.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    tests::{server, status},
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
    for path in ["/api/now", "/api/history?range=1h"] {
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

/// Those who wait meanwhile are told the same: they do not wait one after the other.
#[test]
fn a_loop_that_does_not_answer_is_told_to_all_pages() {
    let server = server();
    let began = Instant::now();
    let pages: Vec<_> = (0..8).map(|_| thread::spawn(move || get(server.address, "/api/now", ""))).collect();
    for page in pages {
        let text = page.join().unwrap();
        assert!(text.starts_with("HTTP/1.1 503") && text.contains("did not answer in time"), "{text}");
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn the_latest_events_are_told_with_the_present() {
    let mut server = server();
    server.answer(&[]);
    (1..=103).for_each(|number| server.stop(number));
    let now = get(server.address, "/api/now", "");
    assert!(now.contains("nobody watches from now on") && now.contains("\"id\":103,"), "{now}");
    assert!(now.contains("\"id\":4,") && !now.contains("\"id\":3,"), "{now}");
}

/// A hundred pages ask, again and again: the loop is asked once a second, not a hundred times.
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
    for _ in 0..300 {
        assert!(get(server.address, "/api/now", "").starts_with("HTTP/1.1 200"));
    }
    let most = 2 + u32::try_from(began.elapsed().as_secs()).unwrap();
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked >= 1 && asked <= most, "{asked} questions, at most {most} expected");
}

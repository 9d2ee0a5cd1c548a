//! The control server with a loop that answers as a test wants.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::PathBuf,
    thread,
    time::Instant,
};

use super::{client::Client, *};
use crate::sink::{Format as _, event_writer::Output as _, stream::Json, wall_clock::WallClock};
use orphand_core::model::{ReapRequest, Status};

/// A running control server.
pub(super) struct TestServer {
    dir: tempfile::TempDir,
    pub(super) address: SocketAddr,
    keeper: crate::events::Keeper,
    _serving: RunningServer,
    pub(super) queries: Option<mpsc::Receiver<Query>>,
}

pub(super) fn serve(dir: tempfile::TempDir, control: ControlServer) -> TestServer {
    let bound = control.http.as_ref().map(|http| http.local_addr().unwrap());
    let address = bound.or(control.taken).unwrap();
    let wall = WallClock::default();
    let (keeper, latest, _) = crate::events::open(&dir.path().join("state"), wall);
    let (serving, queries) = control.start(Metrics::new(wall), latest, dir.path()).unwrap();
    TestServer { dir, address, keeper, _serving: serving, queries: Some(queries) }
}

pub(super) fn server() -> TestServer {
    let dir = tempfile::tempdir().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let control = ControlServer::bind(Some(any), &dir.path().join("control.sock"), None).unwrap();
    serve(dir, control)
}

pub(super) fn status(status: Status) -> Answer {
    Answer::Status { status: Box::new(status) }
}

impl TestServer {
    fn socket(&self) -> PathBuf {
        self.dir.path().join("control.sock")
    }

    /// Answers every query on a thread until the server stops.
    pub(super) fn answer(&mut self, blind: &'static [&'static str]) {
        let mut queries = self.queries.take().unwrap();
        thread::spawn(move || {
            while let Some(Query { request, user, reply }) = queries.blocking_recv() {
                let blind = blind.iter().map(ToString::to_string).collect();
                let answer = match request {
                    Request::Reload => Err("config.toml:1:1: no".to_owned()),
                    Request::Decide { on_behalf_of, .. } | Request::Reap { on_behalf_of, .. } => {
                        Err(on_behalf_of.unwrap())
                    }
                    Request::Release { request } => match request.session {
                        Some(_) => Err(format!("refused: not of user {user}")),
                        None => Ok(Answer::Released { released: Vec::new() }),
                    },
                    Request::Explain { .. } => Ok(Answer::Explained { explained: Vec::new() }),
                    Request::Plan { .. } => Ok(Answer::Plan { planned: Vec::new() }),
                    _ => Ok(status(Status { blind, pid: 7, ..Status::default() })),
                };
                let _ = reply.send(answer);
            }
        });
    }

    /// Tells an event of the end of the daemon, with this number.
    pub(super) fn stop(&mut self, number: u64) {
        let stopping = orphand_core::model::Notice::Stopping { agents: 0, servers: 0, orphans: 0 };
        let mut line = String::new();
        let at = orphand_core::model::BootTime(1);
        Json::after(WallClock::default(), number - 1).write(at, &stopping, &mut line);
        self.keeper.write(&line).unwrap();
    }

    fn get(&self, path: &str, accept: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn send(&self, line: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        // The server may have closed the connection already.
        let _ = stream.write_all(line);
        let mut answer = String::new();
        let _ = BufReader::new(stream).read_line(&mut answer);
        answer
    }
}

#[test]
fn a_scrape_in_both_formats() {
    let mut server = server();
    server.answer(&[]);
    let text = server.get("/metrics", "*/*");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{text}");
    assert!(text.contains("\norphand_watching 1") && !text.contains("# EOF"), "{text}");
    let text = server.get("/metrics", "application/openmetrics-text; version=1.0.0");
    assert!(text.contains("content-type: application/openmetrics-text; version=1.0.0"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(server.get("/nothing", "*/*").starts_with("HTTP/1.1 404"));
}

#[test]
fn health() {
    let mut well = server();
    well.answer(&[]);
    let text = well.get("/healthz", "*/*");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nok\n"), "{text}");
    let mut unwell = server();
    unwell.answer(&["records were lost"]);
    let text = unwell.get("/healthz", "*/*");
    assert!(text.starts_with("HTTP/1.1 503") && text.ends_with("\r\n\r\nrecords were lost\n"), "{text}");
}

#[test]
fn a_loop_that_does_not_answer_is_told() {
    let server = server();
    let text = server.get("/healthz", "*/*");
    assert!(
        text.starts_with("HTTP/1.1 503") && text.contains("busy, or still starting; try again"),
        "{text}"
    );
    assert!(server.get("/metrics", "*/*").contains("\norphand_watching 0"));
}

/// The configuration may name users of a name service that takes its time.
#[test]
fn a_reload_may_take_longer_than_other_answers() {
    let mut server = server();
    let mut queries = server.queries.take().unwrap();
    let asked = thread::spawn(move || {
        let Query { reply, .. } = queries.blocking_recv().unwrap();
        thread::sleep(std::time::Duration::from_millis(2_500));
        let _ = reply.send(Err("config.toml:1:1: no".to_owned()));
    });
    let told = Client::new(&server.socket()).reload().unwrap_err().to_string();
    assert!(told.ends_with("config.toml:1:1: no"), "{told}");
    asked.join().unwrap();
}

#[test]
fn scrapes_at_the_same_time_are_one_question() {
    let mut server = server();
    let mut queries = server.queries.take().unwrap();
    let asked = thread::spawn(move || {
        let mut asked = 0;
        while let Some(Query { reply, .. }) = queries.blocking_recv() {
            asked += 1;
            let _ = reply.send(Ok(status(Status::default())));
        }
        asked
    });
    let began = Instant::now();
    for _ in 0..40 {
        assert!(server.get("/metrics", "*/*").contains("\norphand_watching 1"));
    }
    let most = 1 + began.elapsed().as_millis() / 50;
    drop(server);
    let asked = asked.join().unwrap();
    assert!(asked >= 1 && asked <= most, "{asked} questions, at most {most} expected");
}

#[test]
fn a_user_with_too_many_questions_is_told() {
    let server = server();
    // Nobody reads the queries: those beyond a user's limit are refused at once, the others time out.
    let asked: Vec<_> = (0..=8)
        .map(|_| {
            let client = Client::new(&server.socket());
            thread::spawn(move || client.status(false).unwrap_err().to_string())
        })
        .collect();
    let told: Vec<_> = asked.into_iter().map(|asked| asked.join().unwrap()).collect();
    let late = told.iter().filter(|told| told.contains("did not answer")).count();
    // One that had not been read when the last came has made room.
    assert_eq!(late, 8, "{told:?}");
}

#[test]
fn a_page_of_another_name_is_told_nothing() {
    let mut server = server();
    server.answer(&[]);
    let get = |host: &str| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let refused = get("rebind.example:9477");
    assert!(refused.starts_with("HTTP/1.1 421") && !refused.contains("orphand_"), "{refused}");
    assert!(refused.ends_with("not another name\n"), "{refused}");
    assert!(get("localhost\r\nHost: rebind.example").starts_with("HTTP/1.1 4"));
    assert!(get(&server.address.to_string()).starts_with("HTTP/1.1 200"));
}

/// More connections with half a head than there is room for: a complete request is answered at once, and too
/// long a head is refused.
#[test]
fn half_open_requests_keep_nobody_out() {
    let mut server = server();
    server.answer(&[]);
    let halves: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            // It may be closed already.
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: loc");
            stream
        })
        .collect();
    let began = Instant::now();
    assert!(server.get("/healthz", "*/*").starts_with("HTTP/1.1 200"));
    // Those that stall are let go after 5 s.
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    drop(halves);
    let mut stream = TcpStream::connect(server.address).unwrap();
    let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ");
    let _ = stream.write_all(&vec![b'x'; 64 * 1024]);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

/// More connections than the standard library lets wait, made before any is accepted. Whose connection finds no room tries
/// again only after a second.
#[test]
fn a_queue_of_connections_keeps_nobody_out() {
    let dir = tempfile::tempdir().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let control = ControlServer::bind(Some(any), &dir.path().join("control.sock"), None).unwrap();
    let address = control.http.as_ref().unwrap().local_addr().unwrap();
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let count = (most.trim().parse::<usize>().unwrap() / 2).min(800);
    let limit = std::time::Duration::from_millis(900);
    for n in 0..count {
        drop(
            TcpStream::connect_timeout(&address, limit).unwrap_or_else(|error| panic!("after {n}: {error}")),
        );
    }
    let mut server = serve(dir, control);
    server.answer(&[]);
    assert!(server.get("/healthz", "*/*").starts_with("HTTP/1.1 200"));
}

#[test]
fn the_control_socket_answers() {
    let mut server = server();
    server.answer(&[]);
    let client = Client::new(&server.socket());
    assert_eq!(client.status(true).unwrap().pid, 7);
    assert_eq!(client.plan(ReapRequest::default()).unwrap(), []);
    let answer = server.send(b"{\"version\":1,\"ask\":\"unexpected\"}\n");
    assert!(
        answer.starts_with("{\"version\":1,\"answer\":\"error\",\"error\":\"not understood: "),
        "{answer}"
    );
    let answer = server.send(&vec![b'x'; protocol::REQUEST_MAX + 1]);
    assert!(answer.contains("too long"), "{answer}");
}

#[test]
fn clients_that_stall_keep_nobody_out() {
    let mut server = server();
    server.answer(&[]);
    // More silent clients than one user may have.
    let silent: Vec<_> = (0..64).map(|_| UnixStream::connect(server.socket()).unwrap()).collect();
    let began = Instant::now();
    assert_eq!(Client::new(&server.socket()).status(false).unwrap().pid, 7);
    // Those that stall are let go after 5 s.
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    let told = |stream: &UnixStream| {
        let mut answer = String::new();
        let _ = BufReader::new(stream).read_line(&mut answer);
        answer
    };
    // The first was let go, the last is told when its time is up.
    assert_eq!(told(&silent[0]), "");
    let last = told(&silent[63]);
    assert!(last.contains("no request within 5 s"), "{last}");
}

#[test]
fn nobody_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let error = Client::new(&dir.path().join("none")).status(false).unwrap_err();
    assert!(matches!(error, client::ClientError::NoDaemon { .. }), "{error}");
    assert!(!error.to_string().contains('\n') && error.to_string().contains("orphand run"), "{error}");
}

#[test]
fn an_address_of_another_host() {
    let dir = tempfile::tempdir().unwrap();
    let address = "192.0.2.1:9477".parse().unwrap();
    let error = ControlServer::bind(Some(address), &dir.path().join("s"), None).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot serve metrics on {address}: Cannot assign")), "{error}");
    assert!(error.contains("--listen") && !error.contains('\n'), "{error}");
    // The socket that was taken before is given back.
    assert!(!dir.path().join("s").exists());
}

#[test]
fn memory_is_measured_of_the_process_meant() {
    let proc = Proc::system().unwrap();
    let ours = proc.process(std::process::id()).unwrap().id();
    let server = |start| {
        let process = orphand_core::model::ProcessView {
            pid: ours.pid,
            start,
            uid: 0,
            exe: String::new(),
            argv: Vec::new(),
            argv_truncated: false,
            stale_binary: false,
        };
        orphand_core::model::ServerReport {
            members: vec![orphand_core::model::ProcessId::new(process.pid, process.start)],
            server: orphand_core::model::ServerView { processes: vec![process], ..Default::default() },
            ..Default::default()
        }
    };
    let mut report = orphand_core::model::Report {
        unowned: vec![server(ours.start), server(ours.start + 1)],
        ..Default::default()
    };
    measure(&proc, report.servers_mut().collect(), true);
    let [one, other] = report.unowned.as_slice() else { panic!() };
    assert!(one.server.rss_bytes > Some(1 << 20) && one.pss_bytes > Some(1 << 16), "{one:?}");
    assert!(one.server.cpu_ms.is_some(), "{one:?}");
    assert_eq!((other.server.rss_bytes, other.pss_bytes), (Some(0), Some(0)));
    assert_eq!(other.server.cpu_ms, Some(0));
}

/// The loop is not asked for the history: nothing answers for it here.
#[test]
fn the_past_is_read_from_the_store() {
    let server = server();
    let client = Client::new(&server.socket());
    let query = orphand_core::model::HistoryQuery::default();
    let error = client.history(query.clone()).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.contains("there is no store at"), "{error}");
    // A file that no daemon has written to has no history.
    std::fs::write(server.dir.path().join("orphand.db"), "").unwrap();
    assert_eq!(client.history(query).unwrap(), orphand_core::model::History::default());
}

/// Others send descriptors along, the last one of a connection whose close waits for its reader for a minute.
#[test]
fn the_close_of_what_others_send_along_is_not_waited_for() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
    let mut server = server();
    server.answer(&[]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let (path, mut readers, mut senders) = (server.socket(), Vec::new(), Vec::new());
    let (tell, sent) = std::sync::mpsc::channel();
    for said in [&b"{}"[..], b"{}\n"].repeat(4) {
        let mut slow = TcpStream::connect(address).unwrap();
        readers.push(silent.accept().unwrap().0);
        slow.set_nonblocking(true).unwrap();
        while io::Write::write(&mut slow, &[0; 4096]).is_ok() {}
        sockopt::set_socket_linger(&slow, Some(std::time::Duration::from_secs(600))).unwrap();
        let path = path.clone();
        let tell = tell.clone();
        senders.push(thread::spawn(move || {
            let caller = UnixStream::connect(path).unwrap();
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let given = [std::os::fd::AsFd::as_fd(&slow)];
            control.push(SendAncillaryMessage::ScmRights(&given));
            sendmsg(&caller, &[io::IoSlice::new(said)], &mut control, SendFlags::empty()).unwrap();
            tell.send(()).unwrap();
            drop(slow);
        }));
    }
    assert_eq!(sent.iter().take(8).count(), 8);
    let mut asked = UnixStream::connect(&path).unwrap();
    asked.set_read_timeout(Some(std::time::Duration::from_secs(120))).unwrap();
    asked.write_all(b"{\"version\":1,\"ask\":\"status\"}\n").unwrap();
    let mut answer = String::new();
    let read = BufReader::new(asked).read_line(&mut answer);
    drop(readers);
    for sender in senders {
        sender.join().unwrap();
    }
    assert!(read.is_ok() && answer.contains("\"pid\":7"), "{read:?} {answer}");
}

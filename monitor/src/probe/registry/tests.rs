//! The registry is played by a thread that answers whatever the test says.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
};

use super::*;
use orphand_core::model::SessionMark;

/// What a whole registry says of itself.
const SERVER: &str = "run_id:aa\r\nuptime_in_seconds:5\r\n";
const MASTER: &str = "role:master\r\nmaster_replid:bb\r\n";

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn whole(keys: &str) -> String {
    [bulk(SERVER), bulk(MASTER), bulk("").repeat(4)].concat() + keys
}

/// Plays a registry for any number of connections.
fn play(answer: impl Fn(&mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread_of(move || {
        for mut stream in listener.incoming().flatten() {
            answer(&mut stream);
        }
    });
    address
}

fn thread_of(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work);
}

/// Reads so many commands.
fn commands(stream: &mut TcpStream, wanted: usize) {
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while seen.windows(1).filter(|byte| *byte == b"*").count() < wanted {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(read) => seen.extend_from_slice(&piece[..read]),
        }
    }
}

fn options(address: SocketAddr) -> Sessions {
    let redis = RedisUrl { host: address.ip().to_string(), port: address.port(), ..RedisUrl::default() };
    let mark = SessionMark::Flag("--session".to_owned());
    Sessions { redis, mark, key: "s:{id}".to_owned(), idle: Duration::from_secs(1), user: None }
}

async fn ask(address: SocketAddr) -> Result<Vec<KeyState>, Trouble> {
    let keys = ["s:a".to_owned(), "s:b".to_owned()];
    connection::ask(&options(address), &keys).await.map(|(_, states)| states)
}

/// A registry that answers this to six questions about itself and two keys.
fn answering(text: String) -> SocketAddr {
    play(move |stream| {
        commands(stream, 8);
        let _ = stream.write_all(text.as_bytes());
        // Until the other side has had enough.
        let _ = stream.read(&mut [0; 64]);
    })
}

#[tokio::test]
async fn a_key_is_there_or_missing() {
    let states = ask(answering(whole(":1\r\n:0\r\n"))).await.unwrap();
    assert_eq!(states, [KeyState::Active, KeyState::Missing]);
}

#[tokio::test]
async fn no_other_answer_says_that_a_key_is_missing() {
    for (keys, kind) in [
        (":0\r\n-WRONGTYPE Operation against a key\r\n", "reply"),
        ("-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n", "auth"),
        ("-NOPERM this user has no permissions\r\n:0\r\n", "auth"),
        ("-LOADING Redis is loading the dataset in memory\r\n:0\r\n", "loading"),
        ("-MASTERDOWN Link with MASTER is down\r\n:0\r\n", "loading"),
        ("-MOVED 3999 127.0.0.1:6381\r\n:0\r\n", "reply"),
        (":0\r\n$-1\r\n", "reply"),
        (":0\r\n:2\r\n", "reply"),
        (":0\r\n+OK\r\n", "reply"),
        (":0\r\n*0\r\n", "reply"),
    ] {
        let trouble = ask(answering(whole(keys))).await.unwrap_err();
        assert_eq!(trouble.kind(), kind, "{keys:?}: {trouble}");
    }
    let copy = "role:slave\r\nmaster_link_status:down\r\nmaster_replid:bb\r\n";
    let trouble =
        ask(answering([bulk(SERVER), bulk(copy), bulk("").repeat(4), ":0\r\n:0\r\n".into()].concat())).await;
    assert_eq!(trouble.unwrap_err().kind(), "loading");
    let trouble =
        ask(answering("-ERR unknown command, with args beginning with: hunter2\r\n".repeat(8))).await;
    let trouble = trouble.unwrap_err();
    assert_eq!(trouble.kind(), "reply");
    assert!(!format!("{trouble} {trouble:?}").contains("hunter2"), "{trouble:?}");
}

#[tokio::test]
async fn what_its_user_may_not_do_is_named_with_the_right() {
    let denied = "-NOPERM User orphand has no permissions to run the 'info' command\r\n";
    for (answers, right) in [
        (denied.repeat(6) + ":0\r\n:0\r\n", "it forbids INFO to its user: add `+info` to"),
        (whole("-NOPERM No permissions to access a key\r\n:0\r\n"), "EXISTS of the keys of sessions"),
    ] {
        let trouble = ask(answering(answers)).await.unwrap_err();
        assert_eq!(trouble.kind(), "auth", "{trouble:?}");
        assert!(trouble.to_string().contains(right), "{trouble}");
    }
}

/// Whether a registry could not send as much as it wanted to.
static CUT: AtomicBool = AtomicBool::new(false);

#[tokio::test]
async fn a_registry_that_is_silent_floods_or_hangs_up_is_given_up() {
    let closing = play(|stream| commands(stream, 8));
    assert_eq!(ask(closing).await.unwrap_err().kind(), "closed");
    let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(ask(refused).await.unwrap_err().kind(), "connect");
    let flood = play(|stream| {
        let _ = stream.write_all(b"$900000000\r\n");
        // The kernel's buffers hold less than that.
        let sent = (0..64).take_while(|_| stream.write_all(&vec![b'x'; 1 << 20]).is_ok()).count();
        CUT.store(sent < 64, Ordering::SeqCst);
    });
    let trouble = ask(flood).await.unwrap_err();
    assert!(["closed", "reply"].contains(&trouble.kind()), "{trouble:?}");
    let silent = play(|stream| {
        let _ = stream.read(&mut [0; 1]);
        std::thread::park();
    });
    assert_eq!(ask(silent).await.unwrap_err().kind(), "timeout");
    assert!(CUT.load(Ordering::SeqCst), "more was read than is allowed");
}

/// Whatever a registry sends is read on this stack, half of the one that the daemon's loop has, within bounds. (Frames of a build for
/// tests are several times as large as those of a release.)
#[test]
fn a_registry_that_nests_and_promises_without_end_is_given_up() {
    let hostile = [
        "*1\r\n".repeat(100_000),
        ">1\r\n".repeat(100_000),
        "*9223372036854775807\r\n".to_owned(),
        "$9223372036854775807\r\n".to_owned(),
        format!(":{}\r\n", "9".repeat(200_000)),
    ];
    let asked = std::thread::Builder::new().stack_size(4 << 20).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let asked = hostile.map(|text| (text.chars().take(24).collect::<String>(), answering(text)));
            let asked = asked.map(|(begun, at)| (begun, tokio::spawn(ask(at))));
            for (begun, asked) in asked {
                assert!(asked.await.unwrap().is_err(), "{begun}");
            }
        });
    });
    asked.unwrap().join().unwrap();
}

#[tokio::test]
async fn it_asks_only_while_there_is_a_session_and_counts_what_fails() {
    let address = answering(whole(":1\r\n:0\r\n"));
    let mut registry = Registry::new(Some(options(address)));
    registry.follow([].iter());
    assert!(registry.news.try_recv().is_err());
    let ids = ["a".to_owned(), "b".to_owned()];
    registry.follow(ids.iter());
    let seen = registry.news.recv().await.unwrap();
    let states = [("a".to_owned(), KeyState::Active), ("b".to_owned(), KeyState::Missing)];
    assert_eq!(
        (seen.sessions, seen.registry.map(|life| life.name)),
        (states.to_vec(), Some("aa/bb/0".to_owned()))
    );
    // Nobody answers there: every session is unknown.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    registry.replace(Some(options(nobody)));
    registry.follow(ids.iter());
    let seen = registry.news.recv().await.unwrap();
    let states = [("a".to_owned(), KeyState::Unknown), ("b".to_owned(), KeyState::Unknown)];
    assert_eq!((seen.sessions, seen.registry), (states.to_vec(), None));
    assert_eq!(registry.errors()["connect"], 1);
    registry.replace(None);
    assert!(registry.news.try_recv().is_err());
}

use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    thread,
    time::Instant,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    process::getuid,
};

use super::{
    wire::{Head, PREFIX, tests::message_to},
    *,
};
use crate::probe::tests::{Started, ourselves};

/// The unit that is there.
const KNOWN: &str = "bot.service";

/// Listens there and answers one connection as a manager does; the thread ends with the connection.
fn manager(at: &Path) -> thread::JoinHandle<()> {
    let listener = UnixListener::bind(at).unwrap();
    // Whoever asks hangs up when it has its answer.
    thread::spawn(move || drop(converse(listener.accept().unwrap().0)))
}

fn converse(mut stream: UnixStream) -> io::Result<()> {
    let us: String = getuid().as_raw().to_string().chars().flat_map(|digit| ['3', digit]).collect();
    if line(&mut stream)? != format!("\0AUTH EXTERNAL {us}") {
        return stream.write_all(b"REJECTED EXTERNAL\r\n");
    }
    stream.write_all(b"OK 0123456789abcdef0123456789abcdef\r\n")?;
    assert_eq!([line(&mut stream)?, line(&mut stream)?], ["NEGOTIATE_UNIX_FD", "BEGIN"]);
    stream.write_all(b"AGREE_UNIX_FD\r\n")?;
    loop {
        let mut prefix = [0; PREFIX];
        stream.read_exact(&mut prefix)?;
        let mut rest = vec![0; Head::parse(&prefix)?.rest()];
        stream.read_exact(&mut rest)?;
        let serial = u32::from_le_bytes(prefix[8..12].try_into().unwrap());
        stream.write_all(&answer(serial, &String::from_utf8_lossy(&rest)))?;
    }
}

fn line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// What the unit in [`KNOWN`] is like; another one is not there.
fn answer(serial: u32, asked: &str) -> Vec<u8> {
    const RETURN: u8 = 2;
    let value = |kind: u8, value: &[u8]| {
        // Numbers of eight bytes are aligned to them.
        let body = [&[1, kind, 0][..], &[0; 5][..if kind == b't' { 5 } else { 1 }], value].concat();
        // A manager's own name: one that nobody may have on a bus.
        let sender = b"\x07\x01s\0\x18\0\0\0org.freedesktop.systemd1\0\0\0\0\0\0\0\0";
        message_to(serial, RETURN, &[&sender[..], b"\x08\x01g\0\x01v\0"].concat(), &body)
    };
    let string =
        |text: &str| [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes(), &[0]].concat();
    let text = |text: &str| value(b's', &string(text));
    let has = |word: &str| asked.contains(&format!("{word}\0"));
    match () {
        () if has("Hello") => {
            // A signal comes between.
            let signal = b"l\x04\0\x01\0\0\0\0\x01\0\0\0\x0f\0\0\0\x03\x01s\0\x06\0\0\0Signal\0\0".to_vec();
            let name = message_to(serial, RETURN, b"\x08\x01g\0\x01s\0", &string(":1.5"));
            [signal, name].concat()
        }
        () if has("LoadUnit") && has("odd.service") => {
            let name = string("org.freedesktop.DBus.Error.AccessDenied");
            let mut fields = [&b"\x04\x01s\0"[..], &name].concat();
            fields.resize(fields.len().next_multiple_of(8), 0);
            fields.extend(b"\x08\x01g\0\x01s\0");
            message_to(serial, 3, &fields, &string("not\nfor you"))
        }
        () if has("LoadUnit") => {
            let path = string(if has(KNOWN) { "/known" } else { "/other" });
            message_to(serial, RETURN, b"\x08\x01g\0\x01o\0", &path)
        }
        () if has("LoadState") => text(if has("/known") { "loaded" } else { "not-found" }),
        () if has("FragmentPath") => text("/etc/systemd/system/bot.service"),
        () if has("MainPID") => value(b'u', &7_u32.to_le_bytes()),
        () if has("KillMode") => text("process"),
        () if has("Restart") => text("always"),
        () if has("TimeoutStopUSec") => value(b't', &u64::MAX.to_le_bytes()),
        () if has("Delegate") => value(b'b', &1_u32.to_le_bytes()),
        () => panic!("{asked:?} is not to be asked"),
    }
}

fn named(path: &Path) -> OwnedFd {
    openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

fn question(unit: &str) -> Question {
    let path = "/run/systemd/private".to_owned();
    Question { path, manager: Some(std::process::id()), uid: getuid().as_raw(), unit: unit.to_owned() }
}

#[test]
fn what_a_manager_tells() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("private");
    let asked = manager(&socket);
    let found = bus::ask(named(&socket), &question(KNOWN)).unwrap();
    let expected = UnitProperties {
        main_pid: 7,
        kill_mode: "process".to_owned(),
        restart: "always".to_owned(),
        timeout_stop_us: None,
        delegate: true,
        fragment: "/etc/systemd/system/bot.service".to_owned(),
    };
    assert_eq!(found, expected);
    asked.join().unwrap();

    // A bus wants to be greeted, and says more than it is asked.
    let socket = dir.path().join("bus");
    let asked = manager(&socket);
    let over_a_bus = Question { manager: None, ..question(KNOWN) };
    assert_eq!(bus::ask(named(&socket), &over_a_bus).unwrap(), expected);
    asked.join().unwrap();
}

#[test]
fn what_a_manager_does_not_tell() {
    let dir = tempfile::tempdir().unwrap();
    let ask = |name: &str, question: &Question| {
        let socket = dir.path().join(name);
        let asked = manager(&socket);
        let found = bus::ask(named(&socket), question).unwrap_err();
        asked.join().unwrap();
        found
    };
    assert_eq!(ask("gone", &question("gone.service")), ManagerError::NoUnit);
    let refused = ask("odd", &question("odd.service")).to_string();
    assert!(refused.contains("AccessDenied") && refused.contains("systemctl show"), "{refused}");
    let other = Question { uid: getuid().as_raw() + 1, ..question(KNOWN) };
    assert!(matches!(ask("user", &other), ManagerError::Refused { .. }));
}

#[test]
fn who_is_not_the_manager_is_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("private");
    let listener = UnixListener::bind(&socket).unwrap();
    let sleeper = Started::sleeper(std::process::Stdio::null());
    let other = Question { manager: Some(sleeper.0.id()), ..question(KNOWN) };
    let found = bus::ask(named(&socket), &other).unwrap_err();
    let us = i32::try_from(std::process::id()).unwrap();
    assert_eq!(found, ManagerError::Stranger { path: other.path, found: us });
    drop(listener);
    let found = bus::ask(named(&socket), &question(KNOWN)).unwrap_err();
    assert!(matches!(found, ManagerError::Unreachable { .. }), "{found}");
}

/// A manager that hangs does not make us hang: neither before it takes the call, nor after.
#[test]
fn silence_ends() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("private");
    let _listener = UnixListener::bind(&socket).unwrap();
    let before = Instant::now();
    let silent = Err(ManagerError::Silent { path: question(KNOWN).path });
    assert_eq!(bus::ask(named(&socket), &question(KNOWN)), silent);
    assert!(before.elapsed() >= PATIENCE && before.elapsed() < PATIENCE * 3);

    let full = dir.path().join("full");
    let queue = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None);
    let queue = queue.unwrap();
    rustix::net::bind(&queue, &rustix::net::SocketAddrUnix::new(&full).unwrap()).unwrap();
    rustix::net::listen(&queue, 0).unwrap();
    let _first = std::os::unix::net::UnixStream::connect(&full).unwrap();
    let before = Instant::now();
    assert_eq!(bus::ask(named(&full), &question(KNOWN)), silent);
    assert!(before.elapsed() < PATIENCE);
}

#[test]
fn the_sockets_of_a_manager() {
    let proc = crate::host::Proc::system().unwrap();
    let sleeper = Started::new(
        std::process::Command::new("sleep").arg("600").env("XDG_RUNTIME_DIR", "/run/user/7").env_remove("X"),
    );
    let dir = proc.process(sleeper.0.id()).unwrap();
    let of = |user| {
        let sockets = sockets(&dir, Place { user, container: None });
        let told = |(path, own): (Vec<u8>, bool)| (String::from_utf8(path).unwrap(), own);
        sockets.into_iter().map(told).collect::<Vec<_>>()
    };
    let own = |path: &str| (path.to_owned(), true);
    assert_eq!(of(None).first().unwrap(), &own("/run/systemd/private"));
    assert_eq!(of(Some(7)), [own("/run/user/7/systemd/private"), ("/run/user/7/bus".to_owned(), false)]);
}

#[test]
fn who_lives_in_no_unit_has_no_manager() {
    let probe = Probe::new().unwrap();
    let us = ourselves();
    let (place, said) = probe.service(ProcessId { start: us.start + 1, ..us });
    assert_eq!((place, said), (Place::default(), Err(ManagerError::NotFound)));
}

/// What the child writes is what its parent reads.
#[test]
fn questions_and_answers_survive_the_way() {
    let asked = question(KNOWN);
    assert_eq!(serde_json::from_str::<Question>(&serde_json::to_string(&asked).unwrap()).unwrap(), asked);
    for said in [
        Ok(UnitProperties::default()),
        Err(ManagerError::NoUnit),
        Err(ManagerError::Silent { path: "/run".to_owned() }),
    ] {
        let way = serde_json::to_vec(&said).unwrap();
        assert_eq!(serde_json::from_slice::<Result<UnitProperties, ManagerError>>(&way).unwrap(), said);
    }
}

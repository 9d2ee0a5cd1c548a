use std::{
    os::{fd::OwnedFd, unix::net::UnixListener},
    path::Path,
    time::Instant,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with},
    process::getuid,
};

use super::{
    bus::tests::{KNOWN, manager},
    *,
};
use crate::probe::tests::{Started, ourselves};

fn named(path: &Path) -> OwnedFd {
    openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

fn question(unit: &str) -> Question {
    let path = "/run/systemd/private".to_owned();
    Question { path, manager: Some(std::process::id()), uid: getuid().as_raw(), unit: Some(unit.to_owned()) }
}

fn ask(socket: &Path, question: &Question) -> Result<UnitProperties, ManagerError> {
    bus::ask(named(socket), question, question.unit.as_deref().unwrap())
}

/// A socket with this name that does not listen.
fn bound(path: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

#[test]
fn what_a_manager_tells() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("private");
    let asked = manager(&socket);
    let found = ask(&socket, &question(KNOWN)).unwrap();
    let expected = UnitProperties {
        main_pid: 7,
        kill_mode: "process".to_owned(),
        restart: "always".to_owned(),
        timeout_stop_ms: None,
        delegate: true,
        fragment: "/etc/systemd/system/bot.service".to_owned(),
    };
    assert_eq!(found, expected);
    asked.join().unwrap();
}

#[test]
fn what_a_manager_is_stopping() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("private");
    let asked = manager(&socket);
    let found = bus::stopping(named(&socket), &Question { unit: None, ..question(KNOWN) }).unwrap();
    assert_eq!(found, [KNOWN, "session-2.scope"]);
    asked.join().unwrap();
}

/// Each manager is asked once. One that was not heard may be stopping all of its units, one that refuses is not.
#[test]
fn who_did_not_answer_in_time_may_be_stopping_it() {
    let unit = |name: &str| Unit { manager: "/lab".to_owned(), name: name.to_owned() };
    let is = |said: Result<Vec<String>, ManagerError>| {
        let mut asked = Asked::default();
        let first = asked.is_stopping(&unit(KNOWN), || said);
        let again = |name| asked.is_stopping(&unit(name), || panic!("asked twice"));
        [first].into_iter().chain([KNOWN, "tab.scope"].map(again)).collect::<Vec<_>>()
    };
    assert_eq!(is(Ok(vec![KNOWN.to_owned()])), [true, true, false]);
    assert_eq!(is(Ok(Vec::new())), [false; 3]);
    assert_eq!(is(Err(ManagerError::Silent(String::new()))), [true; 3]);
    assert_eq!(is(Err(ManagerError::Unasked(String::new()))), [true; 3]);
    assert_eq!(is(Err(ManagerError::NoUnit)), [false; 3]);
    assert_eq!(is(Err(ManagerError::Other(String::new()))), [false; 3]);
    // The others have had their time.
    let mut late = Asked { since: Instant::now().checked_sub(PATIENCE), ..Asked::default() };
    assert!(late.is_stopping(&unit(KNOWN), || panic!("asked too late")));
    // Another manager has units of the same names.
    let mut asked = Asked::default();
    let other = Unit { manager: String::new(), ..unit(KNOWN) };
    assert!(asked.is_stopping(&unit(KNOWN), || Ok(vec![KNOWN.to_owned()])));
    assert!(!asked.is_stopping(&other, || Ok(Vec::new())));
}

#[test]
fn who_lives_in_no_unit_is_not_being_stopped() {
    let (probe, us) = (Probe::new().unwrap(), ourselves());
    assert!(!probe.is_being_stopped(ProcessId { start: us.start + 1, ..us }, &mut Asked::default()));
}

#[test]
fn what_a_manager_does_not_tell() {
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str, question: &Question| {
        let socket = dir.path().join(name);
        let asked = manager(&socket);
        let found = ask(&socket, question).unwrap_err();
        asked.join().unwrap();
        found
    };
    assert_eq!(of("gone", &question("gone.service")), ManagerError::NoUnit);
    let refused = of("odd", &question("odd.service")).to_string();
    assert!(refused.contains("(not for you)") && refused.contains("systemctl show"), "{refused}");
    let other = Question { uid: getuid().as_raw() + 1, ..question(KNOWN) };
    assert!(of("user", &other).to_string().starts_with("its manager does not tell ("));
}

#[test]
fn who_is_not_the_manager_is_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("private");
    let _listener = UnixListener::bind(&socket).unwrap();
    let sleeper = Started::sleeper(std::process::Stdio::null());
    let other = Question { manager: Some(sleeper.0.id()), ..question(KNOWN) };
    let found = ask(&socket, &other).unwrap_err();
    let told = format!("at {} not its manager answers, but process {}:", other.path, std::process::id());
    assert!(found.to_string().starts_with(&told), "{found}");
    // Nobody ever listened here. One that has stopped may still be with a child that another test forks.
    let nobody = dir.path().join("nobody");
    let _bound = bound(&nobody);
    let found = ask(&nobody, &question(KNOWN)).unwrap_err();
    assert!(found.to_string().starts_with("cannot reach its manager at "), "{found}");
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
    assert_eq!(place, Place::default());
    assert!(said.unwrap_err().to_string().starts_with("no systemd is seen"));
}

/// The parent reads exactly what the child writes.
#[test]
fn questions_and_answers_survive_the_way() {
    let asked = question(KNOWN);
    assert_eq!(serde_json::from_str::<Question>(&serde_json::to_string(&asked).unwrap()).unwrap(), asked);
    for said in [
        Ok(UnitProperties::default()),
        Err(ManagerError::NoUnit),
        Err(ManagerError::Silent("/run".to_owned())),
        Err(ManagerError::Unasked("no".to_owned())),
    ] {
        let way = serde_json::to_vec(&said).unwrap();
        assert_eq!(serde_json::from_slice::<Result<UnitProperties, ManagerError>>(&way).unwrap(), said);
    }
}

//! Scenes without passes of the kernel: /proc lists the descriptors, and poll(2) tells what is hung up.

use std::{
    collections::BTreeSet,
    net::TcpListener,
    os::{
        fd::{AsFd, OwnedFd},
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
    process::Stdio as Std,
    time::Instant,
};

use rustix::fs::fstat;

use super::{joints::Joints, part, process, rows::Rows, unix};
use crate::{
    host::Proc,
    os::forks_of_tests::calm,
    probe::{
        Probe,
        tests::{Started, ourselves},
    },
    source::kernel_side::Caller,
};
use orphand_core::model::{
    Image, ProcessId, Stdio,
    scene::{End, Endpoint, Holder, ProcessRow, Scene, SceneQuestion, SceneServer, Side, Unread},
};

fn scene(processes: Vec<ProcessId>, stdin: Stdio) -> Scene {
    let servers = vec![SceneServer { processes, stdin, stdout: Stdio::Null }];
    let question = SceneQuestion { servers, ..SceneQuestion::default() };
    let found = calm(|| Probe::new().unwrap().scene(&question));
    assert_eq!(found.unread, []);
    found
}

fn ends(scene: &Scene, wire: Stdio) -> Vec<(Side, Holder)> {
    let of_it = |at: u32| matches!(scene.endpoint(at), Some(Endpoint::Pipe { inode, .. }) if Stdio::Pipe(*inode) == wire);
    let mut found: Vec<_> =
        scene.ends.iter().filter(|end| of_it(end.endpoint)).map(|end| (end.side, end.holder)).collect();
    found.sort();
    found
}

#[test]
fn without_passes_anybody_may_have_a_wire_until_it_is_hung_up() {
    let mut server = Started::bare(Std::piped(), Std::null(), Std::null());
    let wire = server.wire();
    let own = (Side::Reads, Holder::Process(server.id()));
    let ours = (Side::Writes, Holder::Process(ourselves()));
    let found = scene(vec![server.id()], wire);
    assert_eq!(ends(&found, wire), [own, ours, (Side::Writes, Holder::Anybody)]);
    drop(OwnedFd::from(server.0.stdin.take().unwrap()));
    assert_eq!(ends(&scene(vec![server.id()], wire), wire), [own]);
}

#[test]
fn who_has_ended_has_no_row() {
    let mut server = Started::bare(Std::null(), Std::null(), Std::null());
    let id = server.id();
    let found = scene(vec![id], Stdio::Null);
    let row = found.row(id).unwrap();
    assert!(row.full && row.parent == Some(ourselves()) && row.rss_bytes > 0);
    assert_eq!(row.stdio, [Stdio::Null; 3]);
    server.end();
    assert_eq!(scene(vec![id], Stdio::Null), Scene::default());
}

#[test]
fn who_takes_signals_itself_hears_of_its_end_and_of_that_of_others() {
    for (how, hears) in [
        ("signal.pause()", false),
        ("for one in both: signal.signal(one, print)\nsignal.pause()", true),
        ("signal.sigwait(both)", true),
        // As who reads them from signalfd(2).
        ("signal.pthread_sigmask(signal.SIG_BLOCK, both)\nsignal.pause()", true),
    ] {
        let script =
            format!("import signal\nboth = [signal.SIGCHLD, signal.SIGTERM]\nprint(flush=True)\n{how}");
        let (one, _) = Started::python(&script, Std::null());
        let begun = Instant::now();
        let told = || {
            let found = scene(vec![one.id()], Stdio::Null);
            found.row(one.id()).map(|row| (row.hears_of_ends, row.catches_term))
        };
        // It has to get there.
        while told() != Some((hears, hears)) {
            assert!(begun.elapsed().as_secs() < 20, "{how}: {:?}", told());
        }
    }
}

/// The list of unix sockets has a line for each line end in a name.
#[test]
fn a_line_that_a_user_made_up_hides_no_socket() {
    let inode = |socket: &dyn AsFd| fstat(socket.as_fd()).unwrap().st_ino;
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("x\nnonsense\n0: 00000002 00000000 00010000 0001 01 {}", inode(&port));
    let liar = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
    let servers = vec![SceneServer { processes: vec![ourselves()], stdin: Stdio::Null, stdout: Stdio::Null }];
    let question = SceneQuestion { servers, ..SceneQuestion::default() };
    let (proc, asked) = (Proc::system().unwrap(), BTreeSet::from([ourselves()]));
    let mut rows = Rows::new(&proc, &|_| None, &asked);
    let (members, ports) = process::all(&mut rows, &[&question]);
    let mut joints = Joints::new(&members, ports, &[&question], &asked);
    let dir = proc.process(std::process::id()).unwrap();
    let entered = unix::enter_by_name(&mut rows, &mut joints, &dir).unwrap();
    assert!(entered.contains(&inode(&liar)) && !entered.contains(&inode(&port)), "{entered:?}");
}

#[test]
fn who_is_due_at_the_same_moment_is_told_if_it_has_an_opposite_end() {
    let [due, other, writer] = [1, 2, 3].map(|pid| ProcessId { pid, start: 1 });
    let server = |process, wire| SceneServer {
        processes: vec![process],
        stdin: Stdio::Pipe(wire),
        stdout: Stdio::Null,
    };
    let end = |endpoint, process, side| End {
        endpoint,
        holder: Holder::Process(process),
        side,
        numbers: vec![2],
        beyond: false,
    };
    let row = |process| ProcessRow { process, full: true, ..ProcessRow::default() };
    let scene = Scene {
        processes: [due, other, writer].map(row).into(),
        endpoints: [10, 11].map(|inode| Endpoint::Pipe { inode, named: false }).into(),
        ends: vec![
            end(0, due, Side::Reads),
            end(0, writer, Side::Writes),
            // Standard error.
            end(1, due, Side::Writes),
            end(1, other, Side::Writes),
            end(1, writer, Side::Writes),
        ],
        unread: Vec::new(),
    };
    let servers = vec![server(due, 10), server(other, 12), server(writer, 13)];
    let part = part::of(&scene, &SceneQuestion { servers, ..SceneQuestion::default() });
    let told: Vec<ProcessId> = part.processes.iter().map(|row| row.process).collect();
    assert_eq!((told, part.ends.len()), (vec![due, writer], 4));
}

#[test]
fn what_could_not_be_read_of_another_does_not_concern_a_server() {
    let [due, other] = [1, 2].map(|pid| ProcessId { pid, start: 1 });
    let server = |process, wire| SceneServer {
        processes: vec![process],
        stdin: Stdio::Pipe(wire),
        stdout: Stdio::Null,
    };
    let end = |endpoint, holder| End { endpoint, holder, side: Side::Reads, numbers: vec![0], beyond: false };
    let row = |process| ProcessRow { process, full: true, ..ProcessRow::default() };
    let mut scene = Scene {
        processes: [due, other].map(row).into(),
        endpoints: [10, 11].map(|inode| Endpoint::Pipe { inode, named: false }).into(),
        ends: vec![end(0, Holder::Process(due)), end(1, Holder::Process(other)), end(1, Holder::Unreadable)],
        unread: vec![Unread { process: Some(other), why: "it does not answer".to_owned() }],
    };
    let is_whole = |scene: &Scene| {
        [[due, other], [other, due]].map(|[first, second]| {
            let wire = |process: ProcessId| 9 + u64::from(process.pid);
            let servers = [first, second].map(|one| server(one, wire(one))).into();
            let question = SceneQuestion { servers, ..SceneQuestion::default() };
            part::is_whole(&part::of(scene, &question))
        })
    };
    assert_eq!(is_whole(&scene), [true, false]);
    scene.ends.truncate(2);
    assert_eq!(is_whole(&scene), [true, false], "what of it was not read is told of it alone");
    scene.unread.iter_mut().for_each(|unread| unread.process = None);
    assert_eq!(is_whole(&scene), [false, false], "it concerns all");
}

#[test]
fn what_has_no_room_proves_nothing() {
    let process = ProcessId { pid: 1, start: 1 };
    let end = End {
        endpoint: 0,
        holder: Holder::Process(process),
        side: Side::Reads,
        numbers: vec![0],
        beyond: false,
    };
    let part = Scene {
        processes: vec![ProcessRow { process, full: true, ..ProcessRow::default() }],
        endpoints: vec![Endpoint::Pipe { inode: 10, named: false }],
        ends: vec![end],
        unread: Vec::new(),
    };
    let mut room = 1;
    let part = part::fitted(part, &mut room);
    assert!(part::is_whole(&part) && part.blind(|_| false).is_none() && room == 0);
    let part = part::fitted(part, &mut room);
    assert!(part.ends.is_empty() && part.blind(|_| false).is_some() && part.processes.len() == 1);
}

#[test]
fn a_browser_does_not_call_again_and_the_call_of_one_that_has_ended_is_its_parents() {
    let (proc, asked) = (Proc::system().unwrap(), BTreeSet::new());
    let mut rows = Rows::new(&proc, &|_| None, &asked);
    let mut enter = |pid, exe: &str, title: &str| {
        let image = Image { exe: exe.into(), argv: vec![title.into()], ..Image::default() };
        rows.full(ProcessRow { process: ProcessId::new(pid, 1), image, ..ProcessRow::default() });
    };
    enter(1, "/usr/lib/firefox/firefox", "firefox");
    enter(2, "/opt/google/chrome/chrome (deleted)", "/opt/google/chrome/chrome");
    enter(3, "/usr/bin/node", "shim");
    let (shim, browser) = (proc.ourselves().unwrap()[0], ProcessId::new(1, 1));
    let ended = ProcessId::new(4, shim.start + 1);
    rows.gone(ended);
    let mut calls = |by, above, lately| rows.who_calls(Caller::Process { by, above, lately });
    let above = |first, next| [first, 0, 0, next, 0];
    let (nobody, own) = ([0; 5], above(0, shim.pid));
    assert_eq!(
        [1, 2, 3].map(|pid| calls(ProcessId::new(pid, 1), nobody, false).is_some()),
        [false, false, true]
    );
    assert_eq!([browser, ended].map(|by| calls(by, nobody, true)), [Some(browser), Some(ended)]);
    assert_eq!([true, false].map(|lately| calls(ended, own, lately)), [Some(shim); 2]);
    let (first, next) = (above(shim.pid, 1), above(u32::MAX, shim.pid));
    assert_eq!(
        [first, next].map(|above| calls(ended, above, false)),
        [Some(shim); 2],
        "the nearest that lives"
    );
    assert_eq!([true, false].map(|lately| calls(ended, nobody, lately)), [Some(ended), None]);
    let older = ProcessId::new(4, shim.start - 1);
    rows.gone(older);
    assert_eq!(
        rows.who_calls(Caller::Process { by: older, above: own, lately: false }),
        None,
        "another process has the number now"
    );
    let by = browser;
    assert_eq!(
        rows.who_calls(Caller::Process { by, above: own, lately: false }),
        None,
        "it lives: these are its own"
    );
}

#[test]
fn who_stands_for_a_caller_and_cannot_be_read_may_call_again() {
    let root = tempfile::tempdir().unwrap();
    // No directory: neither read nor gone.
    std::fs::write(root.path().join("7"), "").unwrap();
    let (proc, asked) = (Proc::at(root.path()).unwrap(), BTreeSet::new());
    let mut rows = Rows::new(&proc, &|_| None, &asked);
    let by = ProcessId::new(4, 1);
    rows.gone(by);
    let mut calls = |head| rows.who_calls(Caller::Process { by, above: [0, 0, 0, head, 0], lately: false });
    assert_eq!([7, 8].map(&mut calls), [Some(by), None]);
}

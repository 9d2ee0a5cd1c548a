//! Processes that keep whoever reads about them in /proc waiting for ever.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{
    Daemon, Event, Identity, Launch, in_time,
    neighbours::{HOSTILE, Honest, Silent, program},
    orphand, output, scene,
};

use super::GRACE;

/// From its start until a daemon is ready, and how long a verb may take that looks once: some of it is the debug build.
const SOON: Duration = Duration::from_secs(8);

/// The same beside sixty processes that run new programs all the time, on two cores.
const LATE: Duration = Duration::from_secs(10);

/// What a verb that looks once says.
fn look(verb: &[&str]) -> Result<String> {
    let begun = Instant::now();
    let told = output(Command::new(orphand()?).args(verb))?;
    let took = begun.elapsed();
    ensure!(took < in_time(SOON)?, "{verb:?} took {took:?}");
    println!("{verb:?} took {took:?}");
    Ok(String::from_utf8(told.stdout)?)
}

fn ensure_named(text: &str, pid: u32) -> Result<()> {
    let line = format!("{pid} of user {HOSTILE}");
    ensure!(text.contains(&line), "\"{line}\" is not in {text}");
    Ok(())
}

/// Stuck in execve(2) before the daemon was there: it starts, says so, and judges everybody else.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_process_stuck_in_execve_holds_nobody_up() -> Result<()> {
    scene(|s| {
        let silent = Silent::stuck(s, 1)?;
        let pid = *silent.pids().first().context("nobody is stuck")?;
        ensure_named(&look(&["ps", "--no-daemon", "--json"])?, pid)?;
        ensure_named(&look(&["doctor", "--json"])?, pid)?;
        let begun = Instant::now();
        let daemon = s.daemon_with(&Launch::default())?;
        let ready = begun.elapsed();
        ensure!(ready < in_time(SOON)?, "ready after {ready:?}");
        let honest = Honest::at_work(s, "honest")?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        let stuck = tests::within("the status names it", || {
            let status = daemon.ask(&["status"]).ok()?;
            status["stuck"].as_array()?.iter().find(|one| one["pid"] == pid).cloned()
        })?;
        ensure!(stuck["uid"] == HOSTILE, "{stuck}");
        tests::within("the log names it", || ensure_named(&daemon.log(), pid).ok())?;
        println!("one process stuck in execve: ready after {ready:?}, judged after {took:?}");
        silent.release()?;
        tests::within("nobody is stuck any more", || {
            daemon.ask(&["status"]).ok()?.get("stuck").is_none().then_some(())
        })
    })
}

/// Many of them cost hardly more than one: they are found at once.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn fifty_processes_stuck_in_execve_cost_no_second_each() -> Result<()> {
    scene(|s| {
        let silent = Silent::stuck(s, 50)?;
        let begun = Instant::now();
        let daemon = s.daemon_with(&Launch::default())?;
        let ready = begun.elapsed();
        ensure!(ready < in_time(SOON)?, "ready after {ready:?}");
        let honest = Honest::at_work(s, "honest")?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        look(&["ps", "--no-daemon"])?;
        println!("50 processes stuck in execve: ready after {ready:?}, judged after {took:?}");
        silent.release()
    })
}

/// Sixty processes that answer just before a reader gives up: without a bound, one reading of /proc takes a minute.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn processes_that_answer_late_cost_a_second_in_all() -> Result<()> {
    scene(|s| {
        let silent = Silent::slow(s, 60, 200)?;
        let begun = Instant::now();
        let told = String::from_utf8(
            output(Command::new(orphand()?).args(["ps", "--no-daemon", "--json"]))?.stdout,
        )?;
        let scanned = begun.elapsed();
        ensure!(told.contains(&format!(" of user {HOSTILE}")), "nothing is told of them: {told}");
        let begun = Instant::now();
        let daemon = s.daemon_with(&Launch::default())?;
        let ready = begun.elapsed();
        let honest = Honest::at_work(s, "honest")?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        println!("60 late processes: scan {scanned:?}, ready after {ready:?}, judged after {took:?}");
        let late = in_time(LATE)?;
        ensure!(scanned < late && ready < late, "scan {scanned:?}, ready after {ready:?}");
        silent.release()
    })
}

/// An agent whose server, the same file under another name, runs itself again with the silent file open.
const CLAUDE: &str = "#!/usr/bin/python3
import os, subprocess, sys, time
here, path = os.path.dirname(sys.argv[0]), sys.argv[1]
if os.path.basename(sys.argv[0]) == 'claude':
    pipe = subprocess.PIPE
    server = subprocess.Popen([here + '/mcp-server-silent', path], stdin=pipe, stdout=pipe)
    server.stdout.readline()
elif path != 'again':
    print('up', flush=True)
    while not os.path.exists(here + '/go'):
        time.sleep(0.01)
    os.open(path, os.O_RDONLY)
    os.execv(sys.argv[0], [sys.argv[0], 'again'])
time.sleep(600)
";

/// The server of the user who does harm is stuck when its owner ends: that is a doubt, nobody else waits for it, and when it
/// answers again it is judged.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn only_the_server_that_does_not_answer_is_in_doubt() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let silent = Silent::with(s, ["claude", "mcp-server-silent"], CLAUDE)?;
        let started = daemon.wait("server_started of the silent one", |e| {
            e.kind() == "server_started" && e["server"]["processes"][0]["uid"] == HOSTILE
        })?;
        let (server, agent) = (one(&started["server"]["processes"][0])?, one(&started["owner"])?);
        fs::write(s.folder().join("go"), "")?;
        silent.wait_for(1)?;
        ensure!(silent.pids() == [server.pid], "{:?} are stuck, not {server}", silent.pids());
        agent.signal(rustix::process::Signal::KILL)?;
        daemon.wait_for("orphan_suspected", server)?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        let unproven = daemon.wait_for("orphan_unproven", server)?;
        ensure!(unproven.list("doubts").contains(&"wire_unknown"), "{}", unproven.line);
        let judged =
            |daemon: &Daemon| daemon.events().iter().any(|e: &Event| e.is("orphan_detected", server));
        ensure!(!judged(&daemon), "judged although it could not be seen");
        println!("a server stuck in execve: the other one was judged after {took:?}");
        silent.release()?;
        // It is looked at again, unless it ends by itself meanwhile.
        let is_settled = |e: &Event| e.is("orphan_reaped", server) || e.is("orphan_cleared", server);
        daemon.wait("the end of the doubt", is_settled).map(drop)
    })
}

/// An agent whose forked copy, in a session of its own, is stuck in execve(2): it goes on with the agent's work when the
/// agent has exited, and is to be followed.
const HEIR: &str = "#!/usr/bin/python3
import os, subprocess, sys, time
here, path = os.path.dirname(sys.argv[0]), sys.argv[1]
if path == 'again':
    pass
elif os.path.basename(sys.argv[0]) == 'claude':
    pipe = subprocess.PIPE
    server = subprocess.Popen([here + '/mcp-server-silent', path], stdin=pipe, stdout=pipe)
    server.stdout.readline()
    if os.fork() == 0:
        os.setsid()
        os.open(path, os.O_RDONLY)
        os.execv(sys.argv[0], [sys.argv[0], 'again'])
    while not os.path.exists(here + '/go'):
        time.sleep(0.01)
else:
    print('up', flush=True)
    sys.stdin.read()
";

/// The loop itself looks whether a process that it is to follow is there: it waits for nobody.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn an_heir_that_is_stuck_in_execve_holds_nobody_up() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let silent = Silent::with(s, ["claude", "mcp-server-silent"], HEIR)?;
        daemon.wait("server_started of the silent one", |e| {
            e.kind() == "server_started" && e["server"]["processes"][0]["uid"] == HOSTILE
        })?;
        silent.wait_for(1)?;
        fs::write(s.folder().join("go"), "")?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        daemon.wait("the heir", |e| e.kind() == "agent_started" && !e["continues"].is_null())?;
        println!("an heir stuck in execve: the other one was judged after {took:?}");
        silent.release()
    })
}

/// An agent with three servers that others may depend on: one opened a terminal with a shell that waits for commands, one
/// is named like a debugger, and one is the first process of a PID namespace. A fourth has a job in its terminal. None
/// of them ends at the end of its input.
const ENGAGED: &str = "#!/usr/bin/python3
import os, pty, subprocess, sys, time
here, name = os.path.dirname(sys.argv[0]), os.path.basename(sys.argv[0])
if name == 'claude':
    pipe = subprocess.PIPE
    servers = []
    for words in ['mcp-server-terminal'], ['mcp-server-lldb'], ['mcp-server-job'], ['mcp-server-first']:
        words = [here + '/' + words[0]]
        if words[0].endswith('first'):
            words = ['/usr/bin/unshare', '--pid', '--fork'] + words
        servers.append(subprocess.Popen(words, stdin=pipe, stdout=pipe))
    for server in servers:
        server.stdout.readline()
    open(here + '/all', 'w').close()
else:
    if name in ('mcp-server-terminal', 'mcp-server-job'):
        pid, terminal = pty.fork()
        if pid == 0:
            words = ['bash', '--norc'] if name.endswith('terminal') else ['sleep', '600']
            os.execv('/bin/' + words[0], words)
    print('up', flush=True)
time.sleep(600)
";

/// Whom others may depend on is asked of the kernel: a stranger who does not answer keeps nobody.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_stranger_that_is_stuck_keeps_nobody_on_whom_others_may_depend() -> Result<()> {
    scene(|s| {
        let silent = Silent::stuck(s, 1)?;
        let daemon = s.daemon_with(&Launch::default())?;
        let names =
            ["claude", "mcp-server-terminal", "mcp-server-lldb", "mcp-server-job", "mcp-server-first"];
        let agent = program(s, names, ENGAGED)?;
        let all = s.folder().join("all");
        tests::within("all four serve", || all.exists().then_some(()))?;
        let server = |name: &str| {
            let started = daemon.wait(&format!("server_started of {name}"), |e| {
                let processes = e["server"]["processes"].as_array();
                let is_it = |one: &Value| one["argv"].to_string().contains(name);
                e.kind() == "server_started" && processes.is_some_and(|all| all.iter().any(is_it))
            })?;
            one(&started["server"]["processes"][0])
        };
        let [terminal, debugger, job, first] =
            ["mcp-server-terminal", "mcp-server-lldb", "mcp-server-job", "mcp-server-first"].map(server);
        let (terminal, debugger, job, first) = (terminal?, debugger?, job?, first?);
        agent.signal(rustix::process::Signal::KILL)?;
        for orphan in [terminal, debugger, first] {
            daemon.reaped(&[orphan])?;
        }
        let unproven = daemon.wait_for("orphan_unproven", job)?;
        ensure!(unproven.list("doubts") == ["depended_on"], "{}", unproven.line);
        ensure!(job.alive(), "what has a job in its terminal was ended");
        silent.release()
    })
}

/// An agent whose server has sockets that no table lists, each of which is a file of the silent file system every other moment.
const TURNING: &str = "#!/usr/bin/python3
import os, socket, subprocess, sys, time
here, path = os.path.dirname(sys.argv[0]), sys.argv[1]
if os.path.basename(sys.argv[0]) == 'claude':
    pipe = subprocess.PIPE
    server = subprocess.Popen([here + '/mcp-server-turning', path], stdin=pipe, stdout=pipe)
    server.stdout.readline()
    while not os.path.exists(here + '/go'):
        time.sleep(0.01)
else:
    places = [os.dup(2) for _ in range(400)]
    user = (socket.AF_NETLINK, socket.SOCK_RAW, 2)
    sockets = [socket.socket(*user).detach() for _ in places]
    file = os.open(path, os.O_RDONLY)
    print('up', flush=True)
    n = 0
    while True:
        os.dup2(file, places[n])
        n = (n + 1) % 400
        other = (n + 200) % 400
        os.dup2(sockets[other], places[other])
";

/// Whatever descriptor is asked through a duplicate may be a file by then whose close is never answered.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_duplicate_whose_close_is_never_answered_holds_nobody_up() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let silent = Silent::for_root(s, ["claude", "mcp-server-turning"], TURNING)?;
        let started = daemon.wait("server_started of the silent one", |e| {
            e.kind() == "server_started" && e["server"]["processes"][0]["uid"] == HOSTILE
        })?;
        let server = one(&started["server"]["processes"][0])?;
        fs::write(s.folder().join("go"), "")?;
        silent.wait_for(1)?;
        tests::within("the status names it", || {
            let status = daemon.ask(&["status"]).ok()?;
            status["stuck"].as_array()?.iter().any(|one| one["pid"] == server.pid).then_some(())
        })?;
        // An inspection that found the sockets in their places saw them as such.
        daemon.wait("the doubt about the silent one", |e| {
            e.is("orphan_unproven", server) && e.list("doubts").contains(&"wire_unknown")
        })?;
        // Whoever starts a program closes in the child what is open here.
        let open = fs::read_dir(format!("/proc/{}/fd", daemon.id.pid))?.flatten();
        let of_theirs =
            open.filter_map(|fd| fs::read_link(fd.path()).ok()).find(|file| file.ends_with("mount/file"));
        ensure!(of_theirs.is_none(), "a hook or a helper could not be started: {of_theirs:?} is open");
        let took = Honest::at_work(s, "honest")?.judged_in_time(&daemon, GRACE)?;
        println!("a close that is never answered: the other one was judged after {took:?}");
        silent.release()
    })
}

/// A host, and a program that reads its first message into a page that nobody provides: it keeps the lock of the pipe.
const WITHHOLDING: &str = r#"#!/usr/bin/python3
import ctypes, fcntl, os, platform, struct, subprocess, sys, time
here = os.path.dirname(sys.argv[0])
if os.path.basename(sys.argv[0]) == 'host.py':
    tool = subprocess.Popen([here + '/tool.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    tool.stdout.readline()
    tool.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n')
    tool.stdin.flush()
    time.sleep(600)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
[userfaultfd, preadv2] = [323, 327] if platform.machine() == 'x86_64' else [282, 286]
faults = libc.syscall(userfaultfd, 0)
fcntl.ioctl(faults, 0xc018aa3f, struct.pack('QQQ', 0xAA, 0, 0))
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
fcntl.ioctl(faults, 0xc020aa00, struct.pack('QQQQ', page, 4096, 1, 0))
print(flush=True)
long = ctypes.c_long
libc.syscall(long(preadv2), long(0), struct.pack('QQ', page, 16), long(1), long(-1), long(-1), long(0))
"#;

/// Whoever looks at what waits in that pipe waits as long, and is not ended by SIGKILL before: that is a helper, of which there
/// is one, and nobody waits for it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_reader_that_keeps_the_lock_of_its_pipe_does_not_keep_the_daemon() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let host = program(s, ["host.py", "tool.py"], WITHHOLDING)?;
        let helpers = || -> Option<Vec<u32>> {
            let of = format!("/proc/{0}/task", daemon.id.pid);
            let children = fs::read_dir(of).ok()?.flatten().map(|task| task.path().join("children"));
            let children: Vec<_> = children.filter_map(|list| fs::read_to_string(list).ok()).collect();
            let pids =
                children.iter().flat_map(|list| list.split_whitespace()).filter_map(|pid| pid.parse().ok());
            let is_blocked = |pid: &u32| {
                fs::read_to_string(format!("/proc/{pid}/stat"))
                    .is_ok_and(|stat| stat.contains("(orphand-helper) D"))
            };
            Some(pids.filter(is_blocked).collect())
        };
        tests::within("a helper waits for the lock", || helpers().filter(|all| !all.is_empty()).map(drop))?;
        let took = Honest::at_work(s, "honest")?.judged_in_time(&daemon, GRACE)?;
        let waiting = helpers().context("the daemon has ended")?;
        ensure!(waiting.len() == 1, "{waiting:?} wait for the lock");
        let begun = Instant::now();
        daemon.finish()?;
        let ended = begun.elapsed();
        ensure!(ended < in_time(SOON)?, "the daemon ended after {ended:?}");
        println!(
            "a lock that is kept: the other one was judged after {took:?}, the daemon ended after {ended:?}"
        );
        host.signal(rustix::process::Signal::KILL)
    })
}

fn one(process: &Value) -> Result<Identity> {
    let number = |key: &str| process[key].as_u64().with_context(|| format!("no {key} in {process}"));
    Ok(Identity { pid: u32::try_from(number("pid")?)?, start: number("start")? })
}

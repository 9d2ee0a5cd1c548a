//! The workloads of `cargo xtask bench`: storms of new processes, an agent with a server, a crowd of sleeping
//! processes, and empty eBPF programs.
//!
//! `storm vfork|fork|spawn|wires|tcp MS PROGRAM` prints processes, or connections, per second. `storm agent SERVER MS` starts the server,
//! prints its pid and waits to be killed. `storm server MS` is that server. Until their stdin closes, `storm owner
//! SERVER N` is an agent with N servers, `storm crowd PROGRAM N` keeps N sleeping processes, `storm files _ N` N open
//! files, and `storm empty TRACEPOINT ..` keeps an empty program on each tracepoint.

mod empty;
mod new;

use std::{
    cell::Cell,
    env,
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};

/// The user who owns nothing.
const NOBODY: u32 = 65_534;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match *args {
        ["vfork", ms, _] => storm(ms, || wait(new::vfork()?)),
        ["fork", ms, _] => storm(ms, || wait(new::fork()?)),
        // std starts programs by `posix_spawn` where nothing forbids it, as here.
        ["spawn", ms, program] => storm(ms, || done(&mut start(program)?)),
        ["wires", ms, _] => storm(ms, cat),
        ["tcp", ms, _] => calls(ms),
        ["agent", server, ms] => agent(server, ms),
        ["server", ms] => {
            // It ignores its stdin and therefore outlives its client, for a limited time.
            println!("serving");
            thread::sleep(milliseconds(ms)?);
            Ok(())
        }
        // Longer than any bench. The owner keeps the wires.
        ["owner", server, count] => many(count, || wired(server, "86400000")),
        ["crowd", program, count] => many(count, || {
            let mut sleeper = Command::new(program);
            sleeper.arg("infinity").stdin(Stdio::null()).stdout(Stdio::null()).spawn()
        }),
        ["files", _, count] => files(count),
        ["empty", ref tracepoints @ ..] => {
            let _clocks = empty::clocks()?;
            let _programs: Vec<_> =
                tracepoints.iter().map(|name| empty::attach(name)).collect::<Result<_>>()?;
            println!("attached");
            until_stdin_closes()
        }
        _ => bail!("usage: storm vfork|fork|spawn|wires|tcp|agent|server|owner|crowd|files|empty .."),
    }
}

fn milliseconds(text: &str) -> Result<Duration> {
    text.parse().map(Duration::from_millis).with_context(|| format!("{text:?} is no number of milliseconds"))
}

/// Makes and reaps processes for a while, one after the other.
fn storm(ms: &str, one: impl Fn() -> Result<()>) -> Result<()> {
    let window = milliseconds(ms)?;
    // Until the observer, if there is one, has taken notice of this process itself.
    let warm = Instant::now();
    while warm.elapsed() < Duration::from_millis(100) {
        one()?;
    }
    let begun = Instant::now();
    let mut made = 0_u32;
    while begun.elapsed() < window {
        one()?;
        made += 1;
    }
    println!("{:.1}", f64::from(made) / begun.elapsed().as_secs_f64());
    Ok(())
}

/// Connections to a listener of its own, one after the other, at one address after the other: a connection that is over keeps
/// its ports for a minute (`TIME_WAIT`).
fn calls(ms: &str) -> Result<()> {
    let listener = TcpListener::bind("0.0.0.0:0").context("cannot listen")?;
    let (port, next) = (listener.local_addr()?.port(), Cell::new(0_u8));
    storm(ms, || {
        next.set(next.get().wrapping_add(1));
        let connection =
            TcpStream::connect((Ipv4Addr::new(127, 0, 1, next.get()), port)).context("cannot call")?;
        drop((listener.accept().context("nobody called")?, connection));
        Ok(())
    })
}

fn wait(child: Pid) -> Result<()> {
    waitpid(Some(child), WaitOptions::empty()).map(drop).context("cannot wait for a child")
}

fn start(program: &str) -> Result<Child> {
    Command::new(program).spawn().with_context(|| format!("cannot start {program}"))
}

fn done(child: &mut Child) -> Result<()> {
    let status = child.wait().context("cannot wait for a program")?;
    ensure!(status.success(), "a program ended with {status}");
    Ok(())
}

/// `cat` on wires of its own, run by a user of its own: as far as anybody can tell, a server that no rule knows.
fn cat() -> Result<()> {
    let mut cat = Command::new("cat");
    let cat = cat.uid(NOBODY).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    done(&mut cat.context("cannot start cat")?)
}

/// A server on wires of its own.
fn wired(program: &str, ms: &str) -> std::io::Result<Child> {
    Command::new(program).args(["server", ms]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

/// An agent that lives until somebody kills it.
fn agent(program: &str, ms: &str) -> Result<()> {
    let mut server = wired(program, ms).with_context(|| format!("cannot start {program}"))?;
    let mut said = String::new();
    BufReader::new(server.stdout.as_mut().context("the server has no stdout")?).read_line(&mut said)?;
    println!("{}", server.id());
    loop {
        thread::park();
    }
}

/// So many idle processes.
fn many(count: &str, start: impl Fn() -> std::io::Result<Child>) -> Result<()> {
    let count: usize = count.parse().with_context(|| format!("{count:?} is no number"))?;
    let mut all = (0..count).map(|_| start()).collect::<Result<Vec<_>, _>>().context("cannot start one")?;
    println!("gathered");
    let closed = until_stdin_closes();
    for child in &mut all {
        child.kill().and_then(|()| child.wait()).context("cannot end one")?;
    }
    closed
}

/// Open files: as many descriptors of /dev/null.
fn files(count: &str) -> Result<()> {
    let count: u64 = count.parse().with_context(|| format!("{count:?} is no number"))?;
    let most = Rlimit { current: Some(count + 16), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, most).context("cannot allow so many open files")?;
    let null = File::open("/dev/null").context("cannot open /dev/null")?;
    let _all: Vec<File> = (0..count)
        .map(|_| null.try_clone())
        .collect::<Result<_, _>>()
        .context("cannot open so many files")?;
    println!("gathered");
    until_stdin_closes()
}

fn until_stdin_closes() -> Result<()> {
    let read = std::io::stdin().read(&mut [0]).context("cannot read stdin")?;
    ensure!(read == 0, "stdin is there to be closed");
    Ok(())
}

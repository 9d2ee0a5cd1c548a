//! The workloads of `cargo xtask bench`: storms of new processes, an agent with a server, a crowd of sleeping
//! processes, and empty eBPF programs.
//!
//! `storm vfork|fork|spawn|wires MS PROGRAM` prints processes per second. `storm agent SERVER MS` starts the server,
//! prints its pid and waits to be killed. `storm server MS` is that server. `storm owner SERVER N` is an agent with N
//! servers until its stdin closes, `storm crowd N` keeps N sleeping processes until then, `storm files N` N open files. `storm empty TRACEPOINT ..` attaches an empty program to each tracepoint and
//! keeps them until its stdin closes.

mod empty;
mod new;

use std::{
    env,
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};

/// The user who owns nothing.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match *args {
        ["vfork", ms, _] => storm(ms, || wait(new::vfork()?)),
        ["fork", ms, _] => storm(ms, || wait(new::fork()?)),
        ["spawn", ms, program] => storm(ms, || spawn(program)),
        ["wires", ms, _] => storm(ms, cat),
        ["agent", server, ms] => agent(server, ms),
        ["server", ms] => server(ms),
        ["owner", server, count] => owner(server, count),
        ["crowd", count] => crowd(count),
        ["files", count] => files(count),
        ["empty", ref tracepoints @ ..] => empty_programs(tracepoints),
        _ => Err(anyhow::anyhow!(
            "usage: storm vfork|fork|spawn|wires|agent|server|owner|crowd|files|empty .."
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("storm: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn milliseconds(text: &str) -> Result<Duration> {
    text.parse()
        .map(Duration::from_millis)
        .with_context(|| format!("\"{text}\" is no number of milliseconds"))
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

fn wait(child: Pid) -> Result<()> {
    waitpid(Some(child), WaitOptions::empty()).map(drop).context("cannot wait for a child")
}

/// std starts programs by `posix_spawn` where nothing forbids it, as here.
fn spawn(program: &str) -> Result<()> {
    let status = Command::new(program).status().with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "{program} ended with {status}");
    Ok(())
}

/// `cat` on wires of its own, run by a user of its own: as far as anybody can tell, a server that no rule knows.
fn cat() -> Result<()> {
    let mut cat = Command::new("cat");
    cat.uid(NOBODY).stdin(Stdio::piped()).stdout(Stdio::piped());
    let cat = cat.spawn().context("cannot start cat")?;
    let status = cat.wait_with_output().context("cannot wait for cat")?.status;
    ensure!(status.success(), "cat ended with {status}");
    Ok(())
}

/// An agent that lives until somebody kills it.
fn agent(program: &str, ms: &str) -> Result<()> {
    let mut server = Command::new(program)
        .args(["server", ms])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut said = String::new();
    BufReader::new(server.stdout.take().context("the server has no stdout")?).read_line(&mut said)?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", server.id()).and_then(|()| stdout.flush()).context("nobody listens")?;
    // Until it is killed.
    loop {
        thread::park();
    }
}

/// A server that ignores its stdin and therefore outlives its client, for a limited time.
fn server(ms: &str) -> Result<()> {
    println!("serving");
    thread::sleep(milliseconds(ms)?);
    Ok(())
}

/// An agent with idle servers, whose wires it keeps.
fn owner(program: &str, count: &str) -> Result<()> {
    let count: usize = count.parse().with_context(|| format!("\"{count}\" is no number"))?;
    // Longer than any bench.
    let args = ["server", "86400000"];
    let start = |_| Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut servers: Vec<_> =
        (0..count).map(start).collect::<Result<_, _>>().with_context(|| format!("cannot start {program}"))?;
    println!("gathered");
    let closed = until_stdin_closes();
    for server in &mut servers {
        server.kill().and_then(|()| server.wait()).context("cannot end a server")?;
    }
    closed
}

/// Sleeping processes.
fn crowd(count: &str) -> Result<()> {
    let count: usize = count.parse().with_context(|| format!("\"{count}\" is no number"))?;
    let start = |_| Command::new("sleep").arg("infinity").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut crowd: Vec<_> = (0..count).map(start).collect::<Result<_, _>>().context("cannot start sleep")?;
    println!("gathered");
    let closed = until_stdin_closes();
    for child in &mut crowd {
        child.kill().and_then(|()| child.wait()).context("cannot end a sleeper")?;
    }
    closed
}

/// Open files: as many descriptors of /dev/null.
fn files(count: &str) -> Result<()> {
    let count: u64 = count.parse().with_context(|| format!("\"{count}\" is no number"))?;
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

/// Empty programs, and the kernel's clocks on every program of the host.
fn empty_programs(tracepoints: &[&str]) -> Result<()> {
    let _clocks = empty::clocks()?;
    let _programs: Vec<_> = tracepoints.iter().map(|name| empty::attach(name)).collect::<Result<_>>()?;
    println!("attached");
    until_stdin_closes()
}

fn until_stdin_closes() -> Result<()> {
    if std::io::stdin().read(&mut [0]).context("cannot read stdin")? > 0 {
        bail!("stdin is there to be closed");
    }
    Ok(())
}

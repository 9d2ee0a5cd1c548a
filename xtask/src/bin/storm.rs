//! The actors of `cargo xtask bench`: storms of new processes, an agent with a server, a crowd that sleeps.
//!
//! `storm vfork|fork|spawn MS PROGRAM` prints processes a second; `storm agent SERVER MS` starts the server, prints its
//! pid and waits to be killed; `storm server MS`; `storm crowd N` holds N sleeping processes until its stdin closes.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, WaitOptions, waitpid};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match *args {
        ["vfork", ms, _] => storm(ms, || wait(new::vfork()?)),
        ["fork", ms, _] => storm(ms, || wait(new::fork()?)),
        ["spawn", ms, program] => storm(ms, || spawn(program)),
        ["agent", server, ms] => agent(server, ms),
        ["server", ms] => server(ms),
        ["crowd", count] => crowd(count),
        _ => Err(anyhow::anyhow!("usage: storm vfork|fork|spawn|agent|server|crowd ..")),
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

/// A server that does not look at its stdin, and so outlives its client, but not for long.
fn server(ms: &str) -> Result<()> {
    println!("serving");
    thread::sleep(milliseconds(ms)?);
    Ok(())
}

/// Sleeping processes.
fn crowd(count: &str) -> Result<()> {
    let count: usize = count.parse().with_context(|| format!("\"{count}\" is no number"))?;
    let start = |_| Command::new("sleep").arg("infinity").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut crowd: Vec<_> = (0..count).map(start).collect::<Result<_, _>>().context("cannot start sleep")?;
    println!("gathered");
    let heard = std::io::stdin().read(&mut [0]);
    for child in &mut crowd {
        child.kill().and_then(|()| child.wait()).context("cannot end a sleeper")?;
    }
    if heard.context("cannot read stdin")? > 0 {
        bail!("stdin is there to be closed");
    }
    Ok(())
}

/// New processes that exit at once. The only unsafe code of this package: std has no call for a child that
/// runs no program.
mod new {
    use std::ptr;

    use anyhow::{Context as _, Result};
    use rustix::process::Pid;

    /// A copy of this process that exits.
    pub fn fork() -> Result<Pid> {
        // SAFETY: this process has one thread, so the copy may do what it likes.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            exit(ptr::null_mut());
        }
        pid_of(pid)
    }

    /// A child that shares our memory and holds us until it exits: what vfork(2) asks of the kernel, but on a
    /// stack of its own, so that no function returns twice.
    pub fn vfork() -> Result<Pid> {
        let mut stack = [0_u128; 1024];
        let top = stack.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: `exit` fits the signature, needs a few words of the 16 KiB aligned stack, which stays in place
        // until the child is gone because CLONE_VFORK holds us, and touches nothing of ours.
        let pid = unsafe { libc::clone(exit, top.cast(), flags, ptr::null_mut()) };
        pid_of(pid)
    }

    extern "C" fn exit(_: *mut libc::c_void) -> libc::c_int {
        // SAFETY: ends this process at once, without destructors or handlers that belong to the parent.
        unsafe { libc::_exit(0) }
    }

    fn pid_of(pid: libc::pid_t) -> Result<Pid> {
        Pid::from_raw(pid.max(0))
            .with_context(|| format!("no new process: {}", std::io::Error::last_os_error()))
    }
}

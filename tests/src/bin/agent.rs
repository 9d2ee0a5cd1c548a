//! `PROGRAM --servers N`: an agent that is a service, for hosts without an interpreter. Copied under a name
//! that a rule recognises, it reports itself and starts N MCP servers from its folder: on pipes and socket
//! pairs in turn, some in sessions of their own, some double-forked. It reports ready to systemd when each
//! server has printed a line, and leaves all of them behind when it ends, like gateways that rely on their
//! unit to clean up.

use std::{
    env,
    io::{BufRead as _, BufReader, Read},
    os::{
        fd::OwnedFd,
        unix::net::{UnixDatagram, UnixStream},
    },
    path::Path,
    process::{ChildStdin, Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result};

/// Our end of a server's wire.
struct Wire {
    /// The end that the server writes to.
    reads: Box<dyn Read>,
    /// The end that the server reads from, if that is another descriptor; held open, never used.
    _writes: Option<ChildStdin>,
}

fn main() -> Result<()> {
    let count = env::args().skip_while(|a| a != "--servers").nth(1).context("usage: --servers N")?;
    let count: u32 = count.parse().context("--servers")?;
    let program = env::args().next().context("no argv[0]")?;
    let server = Path::new(&program).with_file_name(tests::SERVER);
    tests::report_self("agent", "untether")?;
    let mut wires = (0..count).map(|n| start(&server, n)).collect::<Result<Vec<_>>>()?;
    for wire in &mut wires {
        // Nothing is lost in the buffer, because the server prints one line only.
        BufReader::new(&mut wire.reads).read_line(&mut String::new()).context("a server does not start")?;
    }
    let address = env::var_os("NOTIFY_SOCKET").context("not started by systemd")?;
    UnixDatagram::unbound()?.send_to(b"READY=1", &address).context("tell systemd")?;
    loop {
        thread::park();
    }
}

/// Start the server number `n`.
fn start(server: &Path, n: u32) -> Result<Wire> {
    let double_fork = n % 5 == 4;
    let mut command = if double_fork || n.is_multiple_of(3) {
        let mut setsid = Command::new("/usr/bin/setsid");
        setsid.args(double_fork.then_some("--fork")).arg(server);
        setsid
    } else {
        Command::new(server)
    };
    // Children get no other descriptors, and no NOTIFY_SOCKET, which is between systemd and this process.
    command.args(["--as", &format!("server{n}"), "--kib", "64"]).env_remove("NOTIFY_SOCKET");
    let socket = n % 2 == 1;
    let near = if socket {
        let (near, far) = UnixStream::pair().context("make a socket pair")?;
        let far = OwnedFd::from(far);
        command.stdin(far.try_clone()?).stdout(Stdio::from(far));
        Some(near)
    } else {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        None
    };
    let mut child = command.spawn().with_context(|| format!("start {}", server.display()))?;
    // `wait` closes the standard input that the child still has.
    let (writes, pipe) = (child.stdin.take(), child.stdout.take());
    if double_fork {
        child.wait().context("wait for the first fork")?;
    }
    let reads: Box<dyn Read> = match near {
        Some(near) => Box::new(near),
        None => Box::new(pipe.context("no stdout")?),
    };
    Ok(Wire { reads, _writes: writes })
}

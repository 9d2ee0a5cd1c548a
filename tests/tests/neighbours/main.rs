//! One user's trouble is nobody else's: whatever a user without rights does on the host, the orphan of an honest user beside
//! it is judged within its grace and one second. Each file is one kind of trouble.

mod agents;
mod crowd;
mod descriptors;
mod front;
mod heavy;
mod held;
mod labels;
mod long;
mod room;
mod storm;
mod stuck;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tests::Daemon;

/// The grace of every daemon in these tests.
const GRACE: Duration = Duration::from_millis(300);

/// A page that the daemon serves, without its head.
fn page(daemon: &Daemon, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(daemon.address()?)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(body.to_owned())
}

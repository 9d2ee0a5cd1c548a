//! The daemon's pages over HTTP, as a scraper reads them.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use anyhow::{Context as _, Result, ensure};

use crate::daemon::Daemon;

/// The body of a page.
pub fn page(daemon: &Daemon, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(daemon.address()?)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(body.to_owned())
}

/// The sum over all series of a family.
pub fn sum(text: &str, family: &str) -> f64 {
    let of_family = |line: &&str| line.strip_prefix(family).is_some_and(|rest| rest.starts_with(['{', ' ']));
    text.lines().filter(of_family).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

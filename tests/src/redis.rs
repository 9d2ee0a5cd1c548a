//! A real Redis server of a test, on a port of its own, without persistence.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use crate::{
    host::{Identity, within},
    scene::Scene,
};

const PROGRAM: &str = "/usr/bin/redis-server";

/// A Redis server. It ends with the scene.
#[derive(Debug)]
pub struct Redis {
    /// Its process.
    pub id: Identity,
    pub port: u16,
}

impl Redis {
    /// Starts one on a free port, and waits until it answers.
    pub fn start(s: &Scene) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Self::start_at(s, port)
    }

    pub fn start_at(s: &Scene, port: u16) -> Result<Self> {
        ensure!(Path::new(PROGRAM).exists(), "no {PROGRAM}: run `cargo xtask setup --tests`");
        let mut command = s.command(PROGRAM)?;
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let id = s.spawn(command.current_dir(s.folder()).stdin(Stdio::null()).stdout(Stdio::null()))?;
        let redis = Self { id, port };
        within("an answer of Redis", || redis.tell(&["PING"]).ok())?;
        Ok(redis)
    }

    /// Sends a command over a connection of its own; returns the first line of the answer.
    pub fn tell(&self, words: &[&str]) -> Result<String> {
        self.tell_all(&[words]).map(|mut lines| lines.pop().unwrap_or_default())
    }

    /// Sends commands over one connection; returns the first line of each answer, which has one line.
    pub fn tell_all(&self, commands: &[&[&str]]) -> Result<Vec<String>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).context("connect to Redis")?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let command = |words: &&[&str]| -> String {
            let bulks: String = words.iter().map(bulk).collect();
            format!("*{}\r\n{bulks}", words.len())
        };
        let text: String = commands.iter().map(command).collect();
        stream.write_all(text.as_bytes())?;
        let lines = BufReader::new(stream.take(64 * 1024)).lines().take(commands.len());
        lines.map(|line| line.context("listen to Redis")).collect()
    }

    /// Sends a command that must succeed.
    pub fn order(&self, words: &[&str]) -> Result<()> {
        let answer = self.tell(words)?;
        ensure!(!answer.starts_with('-') && !answer.is_empty(), "{words:?}: {answer}");
        Ok(())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.id.signal(signal)
    }
}

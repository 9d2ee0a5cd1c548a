//! One conversation with the registry: a connection is made for a round of questions and given up after it.
//!
//! Of the replies that Redis may give only the four kinds are read that answer these questions: nothing nests, and
//! lengths are bounded.

use std::{net::ToSocketAddrs as _, time::Duration};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::{Options, RedisUrl, far_end, life, trouble::Trouble};
use crate::os::{beside, clock};
use orphand_core::model::{KeyState, RegistryLife};

/// The longest that each step may take: the name of the host, the connection, the login, one batch.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes that are read for the login and for each batch.
const MOST: usize = 1 << 20;
/// Keys that are asked for at a time.
const BATCH: usize = 256;

enum Reply {
    Text(String),
    Number(i64),
    /// The code of an error, its first word.
    Error(String),
}

/// Asks which of these keys exist, and which life the registry lives all the while.
pub async fn ask(options: &Options, keys: &[String]) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
    let mut stream = BufReader::new(connect(options).await?);
    log_in(&mut stream, &options.redis).await?;
    let mut life: Option<RegistryLife> = None;
    let mut states = Vec::with_capacity(keys.len());
    for batch in keys.chunks(BATCH) {
        let (now, said) = ask_batch(&mut stream, batch).await?;
        if life.as_ref().is_some_and(|life| life.name != now.name) {
            return Err(Trouble::Changed);
        }
        life.get_or_insert(now);
        states.extend(said);
    }
    Ok((life.ok_or(Trouble::Reply)?, states))
}

async fn connect(options: &Options) -> Result<TcpStream, Trouble> {
    let RedisUrl { host, port, password, .. } = &options.redis;
    let name = (host.clone(), *port);
    let found = beside(move || name.to_socket_addrs());
    let found = timeout(PATIENCE, found).await.map_err(|_| Trouble::Timeout)?;
    let mut last = Trouble::Name;
    for address in found.and_then(|found| found).map_err(|_| Trouble::Name)?.take(2) {
        last = match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) if password.is_none() => return Ok(stream),
            Ok(Ok(stream)) => match far_end::check(&stream, options.user).await {
                Ok(()) => return Ok(stream),
                Err(trouble) => trouble,
            },
            Ok(Err(error)) => Trouble::Connect(error),
            Err(_) => Trouble::Timeout,
        }
    }
    Err(last)
}

async fn log_in(stream: &mut BufReader<TcpStream>, redis: &RedisUrl) -> Result<(), Trouble> {
    let database = redis.database.to_string();
    let words: Vec<&str> =
        ["AUTH"].into_iter().chain(redis.user.as_deref()).chain(redis.password.as_deref()).collect();
    let mut questions = Vec::new();
    if redis.password.is_some() {
        questions.push(words);
    }
    if redis.database != 0 {
        questions.push(vec!["SELECT", &database]);
    }
    for (reply, question) in converse(stream, &questions).await?.into_iter().zip(questions) {
        if let Reply::Error(code) = reply {
            return Err(match (question.first(), code.as_str()) {
                (Some(&"AUTH"), "ERR") => Trouble::Refused,
                (Some(&"SELECT"), "ERR" | "NOPERM") => Trouble::Database,
                _ => Trouble::of(&code),
            });
        }
    }
    Ok(())
}

/// What an error with this code means that answers this question, which takes this right.
fn forbidden(question: &'static str, right: &'static str, code: &str) -> Trouble {
    if code == "NOPERM" { Trouble::Forbidden(question, right) } else { Trouble::of(code) }
}

async fn ask_batch(
    stream: &mut BufReader<TcpStream>,
    keys: &[String],
) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
    let info = life::SECTIONS.iter().map(|section| vec!["INFO", section]);
    let questions: Vec<Vec<&str>> = info.chain(keys.iter().map(|key| vec!["EXISTS", key.as_str()])).collect();
    let asked = clock::now();
    let mut replies = converse(stream, &questions).await?.into_iter();
    let mut sections = Vec::new();
    for reply in replies.by_ref().take(life::SECTIONS.len()) {
        match reply {
            Reply::Text(text) => sections.push(text),
            Reply::Error(code) => return Err(forbidden("INFO", "`+info`", &code)),
            Reply::Number(_) => return Err(Trouble::Reply),
        }
    }
    let right = "`+exists` and the pattern of the keys, such as `~mcp:session:*`,";
    let states = replies.map(|reply| match reply {
        Reply::Number(0) => Ok(KeyState::Missing),
        Reply::Number(1) => Ok(KeyState::Active),
        Reply::Error(code) => Err(forbidden("EXISTS of the keys of sessions", right, &code)),
        _ => Err(Trouble::Reply),
    });
    let states = states.collect::<Result<Vec<KeyState>, Trouble>>()?;
    Ok((life::read(&sections, asked)?, states))
}

/// Sends these questions, and reads as many replies.
async fn converse(stream: &mut BufReader<TcpStream>, questions: &[Vec<&str>]) -> Result<Vec<Reply>, Trouble> {
    let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    let written = |words: &Vec<&str>| {
        let words_written: String = words.iter().map(word).collect();
        format!("*{}\r\n{words_written}", words.len())
    };
    let text: String = questions.iter().map(written).collect();
    let talk = async {
        stream.get_mut().write_all(text.as_bytes()).await?;
        let mut source = stream.take(MOST as u64);
        let mut replies = Vec::with_capacity(questions.len());
        for _ in questions {
            replies.push(reply(&mut source).await?);
        }
        Ok(replies)
    };
    timeout(PATIENCE, talk).await.unwrap_or(Err(Trouble::Timeout))
}

/// A reply is one line, or a line with a length and a text of that length.
async fn reply(source: &mut (impl AsyncBufRead + Unpin)) -> Result<Reply, Trouble> {
    let mut line = Vec::new();
    source.read_until(b'\n', &mut line).await?;
    let Some(line) = line.strip_suffix(b"\r\n") else {
        return Err(if line.is_empty() { Trouble::Closed } else { Trouble::Reply });
    };
    let line = String::from_utf8_lossy(line).into_owned();
    let number = || line.get(1..).and_then(|number| number.parse::<i64>().ok()).ok_or(Trouble::Reply);
    match line.as_bytes().first() {
        Some(b'+') => Ok(Reply::Text(line)),
        Some(b':') => Ok(Reply::Number(number()?)),
        Some(b'-') => {
            Ok(Reply::Error(line.trim_start_matches('-').split(' ').next().unwrap_or_default().to_owned()))
        }
        Some(b'$') => {
            let length = usize::try_from(number()?).ok().filter(|length| *length <= MOST);
            let mut text = vec![0; length.ok_or(Trouble::Reply)? + 2];
            source.read_exact(&mut text).await?;
            Ok(Reply::Text(String::from_utf8_lossy(&text).into_owned()))
        }
        _ => Err(Trouble::Reply),
    }
}

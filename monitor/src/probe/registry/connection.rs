//! One conversation with the registry: a connection is made for a round of questions and given up after it.
//!
//! Of the replies that Redis may give only the four kinds are read that answer these questions: nothing nests, and
//! lengths are bounded.
//!
//! What the registry says of itself shows whether it can vouch for the absence of a key, and which life it lives. One that
//! restarts without its data, is emptied, or becomes the copy of another server has no key that it had before. That
//! says nothing about a session. Nor does one that refused to write: what nobody could renew runs out. Its life has a name for
//! that: the id of its process, the id of its data (which changes when it becomes a copy of another server), and how often it
//! was emptied or refused to write.

use std::{collections::BTreeMap, net::ToSocketAddrs as _, time::Duration};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::{RedisUrl, Sessions, far_end, trouble::Trouble};
use crate::os::{beside, clock};
use orphand_core::model::{BootTime, KeyState, RegistryLife};

/// The longest that each step may take: the name of the host, the connection, the login, one batch.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes that are read for the login and for each batch.
const MOST: usize = 1 << 20;
/// Keys that are asked for at a time.
const BATCH: usize = 256;
/// The sections of `INFO` that are needed.
const SECTIONS: [&str; 6] = ["server", "replication", "commandstats", "errorstats", "persistence", "memory"];
/// The commands that take all keys of a database away.
const EMPTYING: [&str; 3] = ["cmdstat_flushall", "cmdstat_flushdb", "cmdstat_swapdb"];
/// The errors of a write that is refused: the disk or the memory is full, copies are missing, or it has become a copy itself.
const REFUSING: [&str; 4] =
    ["errorstat_MISCONF", "errorstat_OOM", "errorstat_NOREPLICAS", "errorstat_READONLY"];
/// The longest id of a process or of data, in bytes.
const LONGEST: usize = 64;

enum Reply {
    Text(String),
    Number(i64),
    /// The code of an error, its first word.
    Error(String),
}

/// Asks which of these keys exist, and which life the registry lives all the while.
pub async fn ask(options: &Sessions, keys: &[String]) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
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

async fn connect(options: &Sessions) -> Result<TcpStream, Trouble> {
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
    let info = SECTIONS.iter().map(|section| vec!["INFO", section]);
    let questions: Vec<Vec<&str>> = info.chain(keys.iter().map(|key| vec!["EXISTS", key.as_str()])).collect();
    let asked = clock::now();
    let mut replies = converse(stream, &questions).await?.into_iter();
    let mut sections = Vec::new();
    for reply in replies.by_ref().take(SECTIONS.len()) {
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
    Ok((life(&sections, asked)?, states))
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

/// The life of a registry that says this of itself. `asked` is when the question was sent.
fn life(sections: &[String], asked: BootTime) -> Result<RegistryLife, Trouble> {
    let fields: BTreeMap<&str, &str> = sections
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim_end().split_once(':'))
        .collect();
    let id = |name: &str| {
        let id = fields.get(name).copied().filter(|id| !id.is_empty() && id.len() <= LONGEST);
        id.filter(|id| id.bytes().all(|b| b.is_ascii_alphanumeric())).ok_or(Trouble::Reply)
    };
    let is = |name: &str, value: &str| fields.get(name) == Some(&value);
    let is_copy = !is("role", "master");
    if is_copy && !(is("master_link_status", "up") && is("master_sync_in_progress", "0")) {
        return Err(Trouble::Loading);
    }
    let number = |name: &str| fields.get(name).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
    let is_full = number("maxmemory") > 0
        && number("used_memory") >= number("maxmemory")
        && is("maxmemory_policy", "noeviction");
    if is_full || is("rdb_last_bgsave_status", "err") || is("aof_last_write_status", "err") {
        return Err(Trouble::Full);
    }
    let lost = EMPTYING.iter().chain(&REFUSING).filter_map(|what| times(fields.get(what)?));
    let lost = lost.fold(0, u64::saturating_add);
    let uptime = fields.get("uptime_in_seconds").and_then(|seconds| seconds.parse().ok());
    let began = uptime.map(|seconds| asked - Duration::from_secs(seconds)).filter(|_| lost == 0 && !is_copy);
    Ok(RegistryLife { name: format!("{}/{}/{lost}", id("run_id")?, id("master_replid")?), began })
}

/// How often a command was called, or an error answered: `calls=3,usec=..`, `count=3`.
fn times(statistics: &str) -> Option<u64> {
    statistics.split(',').next()?.split_once('=')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "# Server\r\nrun_id:aa11\r\nuptime_in_seconds:10\r\n";
    const MASTER: &str = "# Replication\r\nrole:master\r\nmaster_replid:bb22\r\n";

    fn life(sections: &[&str]) -> Result<RegistryLife, Trouble> {
        let sections: Vec<String> = sections.iter().map(ToString::to_string).collect();
        super::life(&sections, BootTime::default() + Duration::from_secs(100))
    }

    #[test]
    fn a_life_has_a_name_and_a_beginning() {
        let one = life(&[SERVER, MASTER, "# Commandstats\r\ncmdstat_get:calls=1,usec=1\r\n"]).unwrap();
        assert_eq!(
            (one.name.as_str(), one.began),
            ("aa11/bb22/0", Some(BootTime::default() + Duration::from_secs(90)))
        );
        let emptied =
            life(&[SERVER, MASTER, "cmdstat_flushall:calls=2,usec=1\r\ncmdstat_flushdb:calls=1,usec=9\r\n"])
                .unwrap();
        assert_eq!((emptied.name.as_str(), emptied.began), ("aa11/bb22/3", None));
        let refused =
            life(&[SERVER, MASTER, "errorstat_MISCONF:count=2\r\nerrorstat_ERR:count=9\r\n"]).unwrap();
        assert_eq!((refused.name.as_str(), refused.began), ("aa11/bb22/2", None));
        let much = format!("cmdstat_flushall:calls={}\r\ncmdstat_flushdb:calls=1\r\n", u64::MAX);
        assert!(life(&[SERVER, MASTER, &much]).is_ok());
    }

    #[test]
    fn who_cannot_vouch_is_no_registry() {
        let copy = |link: &str, sync: &str| {
            format!(
                "role:slave\r\nmaster_link_status:{link}\r\nmaster_sync_in_progress:{sync}\r\nmaster_replid:cc\r\n"
            )
        };
        assert!(life(&[SERVER, &copy("up", "0")]).is_ok());
        for (link, sync) in [("down", "0"), ("up", "1")] {
            assert_eq!(life(&[SERVER, &copy(link, sync)]).unwrap_err().kind(), "loading", "{link} {sync}");
        }
        let memory = |policy: &str| format!("used_memory:9\r\nmaxmemory:8\r\nmaxmemory_policy:{policy}\r\n");
        for full in ["rdb_last_bgsave_status:err\r\n", "aof_last_write_status:err\r\n", &memory("noeviction")]
        {
            assert_eq!(life(&[SERVER, MASTER, full]).unwrap_err().kind(), "full", "{full}");
        }
        for well in ["rdb_last_bgsave_status:ok\r\nmaxmemory:0\r\nused_memory:9\r\n", &memory("allkeys-lru")]
        {
            assert!(life(&[SERVER, MASTER, well]).is_ok(), "{well}");
        }
        for wrong in [&[][..], &[SERVER], &[MASTER], &["run_id:\r\n", MASTER], &["run_id:a b\r\n", MASTER]] {
            assert!(life(wrong).is_err(), "{wrong:?}");
        }
    }
}

//! One conversation with the registry: a connection is made for a round of questions and given up after it.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    thread,
    time::Duration,
};

use redis::{AsyncConnectionConfig, Pipeline, RedisResult, Value, aio::MultiplexedConnection};
use tokio::{
    io::{AsyncReadExt as _, join, split},
    net::TcpStream,
    sync::oneshot,
    time::timeout,
};

use super::{Options, far_end, life, trouble::Trouble};
use crate::os::clock;
use orphand_core::model::{KeyState, RegistryLife};

/// The longest that each step may take: the name of the host, the connection, the login, one batch.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes that are read for the login and for each batch.
const MOST: u64 = 1 << 20;
/// Keys that are asked for at a time.
const BATCH: usize = 256;

/// The way to the registry.
#[derive(Default)]
pub struct Way {
    /// The look-up of a name that has not ended: there is never a second one.
    lookup: Option<oneshot::Receiver<io::Result<Vec<SocketAddr>>>>,
}

impl Way {
    /// Asks which of these keys exist, and which life the registry lives all the while.
    pub async fn ask(
        &mut self,
        options: &Options,
        keys: &[String],
    ) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
        let (read, write) = split(self.connect(options).await?);
        let batches = keys.chunks(BATCH).len() as u64;
        let stream = join(read.take(MOST.saturating_mul(batches.saturating_add(1))), write);
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
        let login = &options.redis.login;
        let opened = timeout(PATIENCE, MultiplexedConnection::new_with_config(login, stream, config)).await;
        let (redis, driver) =
            opened.map_err(|_| Trouble::timeout())?.map_err(|error| Trouble::at_login(error, login.db()))?;
        tokio::select! {
            biased;
            answer = converse(redis, keys) => answer,
            () = driver => Err(Trouble::closed()),
        }
    }

    async fn connect(&mut self, options: &Options) -> Result<TcpStream, Trouble> {
        let mut last = Trouble::name();
        for address in self.look_up(&options.redis.host, options.redis.port).await? {
            last = match timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => match vouched(&stream, options).await {
                    Ok(()) => return Ok(stream),
                    Err(trouble) => trouble,
                },
                Ok(Err(error)) => Trouble::connect(&error),
                Err(_) => Trouble::timeout(),
            }
        }
        Err(last)
    }

    /// The addresses of a host, two at most. A name is looked up by a thread, which may hang.
    async fn look_up(&mut self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Trouble> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        if self.lookup.is_none() {
            let (tell, found) = oneshot::channel();
            let host = host.to_owned();
            let look_up = move || {
                let addresses = (host.as_str(), port).to_socket_addrs().map(|all| all.take(2).collect());
                drop(tell.send(addresses));
            };
            let thread = thread::Builder::new().name("orphand-name".to_owned()).spawn(look_up);
            thread.map_err(|error| Trouble::connect(&error))?;
            self.lookup = Some(found);
        }
        let Some(lookup) = &mut self.lookup else { return Err(Trouble::name()) };
        let found = timeout(PATIENCE, lookup).await.map_err(|_| Trouble::timeout())?;
        self.lookup = None;
        found.ok().and_then(Result::ok).ok_or_else(Trouble::name)
    }
}

/// Whether the password, if there is one, may be sent there.
async fn vouched(stream: &TcpStream, options: &Options) -> Result<(), Trouble> {
    match options.redis.login.password() {
        Some(_) => far_end::check(stream, options.user).await,
        None => Ok(()),
    }
}

async fn converse(
    mut redis: MultiplexedConnection,
    keys: &[String],
) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
    let mut life: Option<RegistryLife> = None;
    let mut states = Vec::with_capacity(keys.len());
    for batch in keys.chunks(BATCH) {
        let (now, said) = ask(&mut redis, batch).await?;
        if life.as_ref().is_some_and(|life| life.name != now.name) {
            return Err(Trouble::changed());
        }
        life.get_or_insert(now);
        states.extend(said);
    }
    Ok((life.ok_or_else(Trouble::reply)?, states))
}

async fn ask(
    redis: &mut MultiplexedConnection,
    keys: &[String],
) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
    let mut questions = Pipeline::new();
    for section in life::SECTIONS {
        questions.cmd("INFO").arg(section);
    }
    for key in keys {
        questions.cmd("EXISTS").arg(key.as_bytes());
    }
    let asked = clock::now();
    let answers = questions.ignore_errors().query_async::<Vec<RedisResult<Value>>>(redis);
    let answers = timeout(PATIENCE, answers).await.map_err(|_| Trouble::timeout())??;
    let mut answers = answers.into_iter();
    let mut sections = Vec::new();
    for answer in answers.by_ref().take(life::SECTIONS.len()) {
        let answer = answer.map_err(|error| Trouble::of("INFO", "`+info`", error))?;
        sections.push(redis::from_redis_value::<String>(answer).map_err(|_| Trouble::reply())?);
    }
    let (question, right) = (
        "EXISTS of the keys of sessions",
        "`+exists` and the pattern of the keys, such as `~mcp:session:*`,",
    );
    let states = answers.map(|answer| match answer.map_err(|error| Trouble::of(question, right, error))? {
        Value::Int(0) => Ok(KeyState::Missing),
        Value::Int(1) => Ok(KeyState::Active),
        _ => Err(Trouble::reply()),
    });
    let states = states.collect::<Result<Vec<KeyState>, Trouble>>()?;
    if states.len() != keys.len() {
        return Err(Trouble::reply());
    }
    Ok((life::read(&sections, asked)?, states))
}

//! The connection to the registry: made when it is needed, given up after every failure.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use redis::{AsyncConnectionConfig, Pipeline, RedisResult, Value, aio::MultiplexedConnection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

use super::{
    Options, far_end, life,
    trouble::{Action, Trouble},
};
use crate::os::clock;
use orphand_core::model::{KeyState, RegistryLife};

/// The longest that each step may take: the name of the host, the connection, the login, one batch.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes that are read for the login and for each batch.
const MOST: usize = 1 << 20;

/// The connection, if there is one.
#[derive(Default)]
pub struct Connection {
    open: Option<Open>,
    /// The look-up of a name that has not ended: there is never a second one.
    lookup: Option<oneshot::Receiver<io::Result<Vec<SocketAddr>>>>,
}

struct Open {
    redis: MultiplexedConnection,
    driver: JoinHandle<()>,
    left: Arc<AtomicUsize>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Gives the connection up.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Asks which of these keys exist, and which life the registry lives meanwhile.
    pub async fn ask(
        &mut self,
        options: &Options,
        keys: &[String],
    ) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
        if let Some(open) = &mut self.open {
            match open.ask(keys).await {
                // It was closed while nothing was asked.
                Err(Trouble::Closed) => self.open = None,
                answer => return answer,
            }
        }
        let open = self.connect(options).await?;
        self.open.insert(open).ask(keys).await
    }

    async fn connect(&mut self, options: &Options) -> Result<Open, Trouble> {
        let mut last = Trouble::Name;
        for address in self.look_up(&options.host, options.port).await? {
            match timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => match vouched(&stream, options).await {
                    Ok(()) => return Open::log_in(stream, options).await,
                    Err(trouble) => last = trouble,
                },
                Ok(Err(error)) => last = Trouble::Connect(error),
                Err(_) => last = Trouble::Timeout,
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
            thread.map_err(Trouble::Connect)?;
            self.lookup = Some(found);
        }
        let Some(lookup) = &mut self.lookup else { return Err(Trouble::Name) };
        let found = timeout(PATIENCE, lookup).await.map_err(|_| Trouble::Timeout)?;
        self.lookup = None;
        match found {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(_)) | Err(_) => Err(Trouble::Name),
        }
    }
}

/// Whether the password, if there is one, may be sent there.
async fn vouched(stream: &TcpStream, options: &Options) -> Result<(), Trouble> {
    match options.login.password() {
        Some(_) => far_end::check(stream, options.user).await,
        None => Ok(()),
    }
}

impl Open {
    async fn log_in(stream: TcpStream, options: &Options) -> Result<Self, Trouble> {
        let left = Arc::new(AtomicUsize::new(MOST));
        let stream = Bounded { stream, left: Arc::clone(&left) };
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
        let login = MultiplexedConnection::new_with_config(&options.login, stream, config);
        let (redis, driver) = timeout(PATIENCE, login)
            .await
            .map_err(|_| Trouble::Timeout)?
            .map_err(|error| Trouble::at_login(error, options.login.db()))?;
        Ok(Self { redis, driver: tokio::spawn(driver), left })
    }

    async fn ask(&mut self, keys: &[String]) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
        self.left.store(MOST, Ordering::Relaxed);
        let mut questions = Pipeline::new();
        for section in life::SECTIONS {
            questions.cmd("INFO").arg(section);
        }
        for key in keys {
            questions.cmd("EXISTS").arg(key.as_bytes());
        }
        let asked = clock::now();
        let answers = questions.ignore_errors().query_async::<Vec<RedisResult<Value>>>(&mut self.redis);
        let answers = timeout(PATIENCE, answers).await.map_err(|_| Trouble::Timeout)??;
        let mut answers = answers.into_iter();
        let mut sections = Vec::new();
        for answer in answers.by_ref().take(life::SECTIONS.len()) {
            let answer = answer.map_err(|error| Action::Info.failed(error))?;
            sections.push(redis::from_redis_value::<String>(answer).map_err(|_| Trouble::Reply)?);
        }
        let states = answers.map(|answer| match answer.map_err(|error| Action::Exists.failed(error))? {
            Value::Int(0) => Ok(KeyState::Missing),
            Value::Int(1) => Ok(KeyState::Active),
            _ => Err(Trouble::Reply),
        });
        let states = states.collect::<Result<Vec<KeyState>, Trouble>>()?;
        if states.len() != keys.len() {
            return Err(Trouble::Reply);
        }
        Ok((life::read(&sections, asked)?, states))
    }
}

/// A stream of which no more than a bounded number of bytes is read.
struct Bounded {
    stream: TcpStream,
    left: Arc<AtomicUsize>,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let read = buf.filled().len().saturating_sub(before);
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(read), Ordering::Relaxed);
        if read > left { Poll::Ready(Err(io::ErrorKind::InvalidData.into())) } else { polled }
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

//! What can go wrong with the registry.
//!
//! Invariant: nothing that the registry wrote is shown. A server may repeat what it was sent, the password included.

use std::io;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Every kind, in the words of the metrics.
pub const KINDS: [&str; 8] =
    ["auth", "changed", "closed", "connect", "loading", "reply", "stranger", "timeout"];

/// What a user of the registry must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To ask which process answers, which data it has, and how often it was emptied.
    Info,
    /// To ask for the keys of sessions.
    Exists,
}

impl Action {
    const fn action(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Exists => "EXISTS of the keys of sessions",
        }
    }

    const fn right(self) -> &'static str {
        match self {
            Self::Info => "`+info`",
            Self::Exists => "`+exists` and the pattern of the keys, such as `~mcp:session:*`,",
        }
    }

    /// What an error means that answers this.
    pub fn failed(self, error: RedisError) -> Trouble {
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoPerm) => Trouble::Forbidden(self),
            _ => error.into(),
        }
    }
}

/// Why the registry could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// There is no connection.
    #[error("no connection ({0}); is it running, and is the address right?")]
    Connect(io::Error),
    /// On this host somebody listens there who must not know the password: this user, or nobody who can be told.
    #[error("{}", stranger(*.0))]
    Stranger(Option<u32>),
    /// The name of the host was not found.
    #[error("the name of its host cannot be looked up; is it right?")]
    Name,
    /// It took too long.
    #[error("it does not answer in time")]
    Timeout,
    /// The connection ended.
    #[error("the connection ended")]
    Closed,
    /// It wants a password, or another one.
    #[error("it refuses the user or the password; correct `redis` in [sessions]")]
    Auth,
    /// It does not let its user choose the database.
    #[error(
        "it refuses the database of its address: there is none of that number, or its user lacks the right `+select`"
    )]
    Database,
    /// It forbids something to its user.
    #[error("it forbids {} to its user: add {} to the rights of that user (ACL SETUSER)", .0.action(), .0.right())]
    Forbidden(Action),
    /// It has not loaded its data yet, or is the copy of a server that it has no connection to.
    #[error("it has not loaded its data, or is a copy that is not up to date")]
    Loading,
    /// The keys are elsewhere: it is part of a cluster.
    #[error("it is part of a cluster, which is not supported")]
    Moved,
    /// It was replaced or emptied while it was asked.
    #[error("it was replaced or emptied while it was asked")]
    Changed,
    /// The answer is another one than a registry gives.
    #[error("its answer makes no sense; is it a Redis server?")]
    Reply,
}

fn stranger(user: Option<u32>) -> String {
    match user {
        Some(user) => format!(
            "there listens a process of user {user}, who is neither root nor a service of the system: no password is sent. If \
             Redis runs as that user, start orphand with --registry-user {user}"
        ),
        None => "no process of this host is seen that accepts the connection, and no password is sent to whom nobody \
                 knows; is the address right?"
            .to_owned(),
    }
}

impl Trouble {
    /// The word of the metrics, one of [`KINDS`].
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Connect(_) | Self::Name => "connect",
            Self::Stranger(_) => "stranger",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Auth | Self::Database | Self::Forbidden(_) => "auth",
            Self::Loading => "loading",
            Self::Changed => "changed",
            Self::Moved | Self::Reply => "reply",
        }
    }
}

impl Trouble {
    /// What an error means that answers the login, which chooses this database.
    pub fn at_login(error: RedisError, database: i64) -> Self {
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::ResponseError) if database != 0 => Self::Database,
            _ => error.into(),
        }
    }
}

impl From<RedisError> for Trouble {
    fn from(error: RedisError) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => Self::Auth,
            ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown) => Self::Loading,
            ErrorKind::Server(
                ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::CrossSlot
                | ServerErrorKind::TryAgain,
            ) => Self::Moved,
            ErrorKind::Io => Self::Closed,
            _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => Self::Auth,
            _ => Self::Reply,
        }
    }
}

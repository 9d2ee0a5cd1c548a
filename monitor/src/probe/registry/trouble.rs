//! What can go wrong with the registry.
//!
//! Invariant: nothing that the registry wrote is shown. A server may repeat what it was sent, the password included.

use std::io;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Every kind, in the words of the metrics.
pub const KINDS: [&str; 7] = ["auth", "changed", "closed", "connect", "loading", "reply", "timeout"];

/// Why the registry could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// There is no connection.
    #[error("no connection ({0}); is it running, and is the address right?")]
    Connect(io::Error),
    /// The name of the host was not found.
    #[error("the name of its host cannot be looked up; is it right?")]
    Name,
    /// It took too long.
    #[error("it does not answer in time")]
    Timeout,
    /// The connection ended.
    #[error("the connection ended")]
    Closed,
    /// It wants a password, or another one, or forbids a command to its user.
    #[error(
        "it refuses the user or the password, or forbids INFO or EXISTS to this user; correct `redis` in [sessions]"
    )]
    Auth,
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

impl Trouble {
    /// The word of the metrics, one of [`KINDS`].
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Connect(_) | Self::Name => "connect",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Auth => "auth",
            Self::Loading => "loading",
            Self::Changed => "changed",
            Self::Moved | Self::Reply => "reply",
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

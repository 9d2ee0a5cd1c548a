//! What can go wrong with the registry.
//!
//! Invariant: nothing that the registry wrote is shown. A server may repeat what it was sent, the password included.

use std::io;

/// Why the registry could not be asked: a part of a sentence that says what is missing.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("no connection ({0}); is it running, and is the address right?")]
    Connect(io::Error),
    #[error("the name of its host cannot be looked up; is it right?")]
    Name,
    #[error("it does not answer in time")]
    Timeout,
    #[error("the connection ended")]
    Closed,
    /// It has not loaded its data yet, or is the copy of a server that it has no connection to.
    #[error("it has not loaded its data, or is a copy that is not up to date")]
    Loading,
    #[error("it refuses to write, or cannot save: its disk or its memory is full")]
    Full,
    #[error("it was replaced or emptied while it was asked")]
    Changed,
    #[error("its answer makes no sense; is it a Redis server?")]
    Reply,
    #[error("it is part of a cluster, which is not supported")]
    Cluster,
    #[error("it refuses the user or the password; correct `redis` in [sessions]")]
    Refused,
    #[error(
        "it refuses the database of its address: there is none of that number, or its user lacks the right `+select`"
    )]
    Database,
    /// The question, and the right that it takes.
    #[error("it forbids {0} to its user: add {1} to the rights of that user (ACL SETUSER)")]
    Forbidden(&'static str, &'static str),
    /// On this host this user has the far end, who must not know the password.
    #[error(
        "there listens a process of user {0}, who is neither root nor a service of the system: no password is sent. If \
         Redis runs as that user, start orphand with --registry-user {0}"
    )]
    Stranger(u32),
    #[error(
        "no process of this host is seen that accepts the connection, and no password is sent to whom nobody \
         knows; is the address right?"
    )]
    Nobody,
}

/// Every kind, in the words of the metrics.
pub const KINDS: [&str; 9] =
    ["auth", "changed", "closed", "connect", "full", "loading", "reply", STRANGER, "timeout"];
pub const STRANGER: &str = "stranger";

impl Trouble {
    /// One of [`KINDS`].
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Connect(_) | Self::Name => "connect",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::Loading => "loading",
            Self::Changed => "changed",
            Self::Reply | Self::Cluster => "reply",
            Self::Refused | Self::Database | Self::Forbidden(..) => "auth",
            Self::Stranger(_) | Self::Nobody => STRANGER,
        }
    }

    pub fn of(code: &str) -> Self {
        match code {
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Self::Refused,
            "LOADING" | "MASTERDOWN" => Self::Loading,
            "MOVED" | "ASK" | "CLUSTERDOWN" | "CROSSSLOT" | "TRYAGAIN" => Self::Cluster,
            _ => Self::Reply,
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

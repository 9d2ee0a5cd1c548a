//! What can go wrong with the registry.
//!
//! Invariant: nothing that the registry wrote is shown. A server may repeat what it was sent, the password included.

use std::io;

/// Every kind, in the words of the metrics.
pub const KINDS: [&str; 8] =
    ["auth", "changed", "closed", "connect", "loading", "reply", STRANGER, "timeout"];
/// On this host somebody listens there who must not know the password.
pub const STRANGER: &str = "stranger";

/// Why the registry could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct Trouble {
    /// One of [`KINDS`].
    pub kind: &'static str,
    /// A part of a sentence that says what is missing.
    why: String,
}

impl Trouble {
    fn new(kind: &'static str, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }

    pub fn connect(error: &io::Error) -> Self {
        Self::new("connect", format!("no connection ({error}); is it running, and is the address right?"))
    }

    /// The name of the host was not found.
    pub fn name() -> Self {
        Self::new("connect", "the name of its host cannot be looked up; is it right?")
    }

    pub fn timeout() -> Self {
        Self::new("timeout", "it does not answer in time")
    }

    pub fn closed() -> Self {
        Self::new("closed", "the connection ended")
    }

    /// It has not loaded its data yet, or is the copy of a server that it has no connection to.
    pub fn loading() -> Self {
        Self::new("loading", "it has not loaded its data, or is a copy that is not up to date")
    }

    pub fn changed() -> Self {
        Self::new("changed", "it was replaced or emptied while it was asked")
    }

    /// The answer is another one than a registry gives.
    pub fn reply() -> Self {
        Self::new("reply", "its answer makes no sense; is it a Redis server?")
    }

    fn refused() -> Self {
        Self::new("auth", "it refuses the user or the password; correct `redis` in [sessions]")
    }

    /// On this host this user, or nobody who can be told, has the far end.
    pub fn stranger(user: Option<u32>) -> Self {
        let why = match user {
            Some(user) => format!(
                "there listens a process of user {user}, who is neither root nor a service of the system: no password is sent. If \
                 Redis runs as that user, start orphand with --registry-user {user}"
            ),
            None => "no process of this host is seen that accepts the connection, and no password is sent to whom nobody \
                     knows; is the address right?"
                .to_owned(),
        };
        Self::new(STRANGER, why)
    }

    /// What an error with this code means that answers the login.
    pub fn at_login(code: &str) -> Self {
        if code == "ERR" { Self::refused() } else { Self::of_code(code) }
    }

    /// The same of the choice of the database.
    pub fn at_database(code: &str) -> Self {
        let wrong = "it refuses the database of its address: there is none of that number, or its user lacks the right `+select`";
        if matches!(code, "ERR" | "NOPERM") { Self::new("auth", wrong) } else { Self::of_code(code) }
    }

    /// The same of this question, which takes this right.
    pub fn of(question: &str, right: &str, code: &str) -> Self {
        if code == "NOPERM" {
            let advice = format!("add {right} to the rights of that user (ACL SETUSER)");
            return Self::new("auth", format!("it forbids {question} to its user: {advice}"));
        }
        Self::of_code(code)
    }

    fn of_code(code: &str) -> Self {
        match code {
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Self::refused(),
            "LOADING" | "MASTERDOWN" => Self::loading(),
            "MOVED" | "ASK" | "CLUSTERDOWN" | "CROSSSLOT" | "TRYAGAIN" => {
                Self::new("reply", "it is part of a cluster, which is not supported")
            }
            _ => Self::reply(),
        }
    }
}

/// The connection broke.
impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::closed()
    }
}

//! The address for the page, metrics and health.

use std::{fmt, net::SocketAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// An address to listen at; none: nothing is served over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Listen(pub Option<SocketAddr>);

/// The text is neither an address nor `none`.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is not an address: write it like \"127.0.0.1:9477\" or \"[::1]:9477\", or \"none\" for off")]
pub struct ListenError(String);

impl Default for Listen {
    fn default() -> Self {
        Self(Some(SocketAddr::from(([127, 0, 0, 1], 9477))))
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text {
            "none" => Ok(Self(None)),
            _ => text.parse().map(|address| Self(Some(address))).map_err(|_| ListenError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Listen {
    type Error = ListenError;

    fn try_from(text: String) -> Result<Self, ListenError> {
        text.parse()
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> Self {
        listen.to_string()
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(address) => address.fmt(f),
        }
    }
}

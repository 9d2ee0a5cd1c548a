//! The address for metrics and health.

use std::{fmt, net::SocketAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// An address to listen at, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Listen {
    /// Nothing is served over HTTP.
    Off,
    /// The address to listen at.
    At(SocketAddr),
}

/// The text is neither an address nor `none`.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is not an address: write it like \"127.0.0.1:9477\" or \"[::1]:9477\", or \"none\" for off")]
pub struct ListenError(String);

impl Default for Listen {
    fn default() -> Self {
        Self::At(SocketAddr::from(([127, 0, 0, 1], 9477)))
    }
}

impl Listen {
    /// The address; `None` if HTTP is off.
    pub const fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text {
            "none" => Ok(Self::Off),
            _ => text.parse().map(Self::At).map_err(|_| ListenError(text.to_owned())),
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
        match self {
            Self::Off => f.write_str("none"),
            Self::At(address) => address.fmt(f),
        }
    }
}

//! What the first message on the standard input of a process says.

use serde::{Deserialize, Serialize};

/// What the first message on a standard input says. The message is read without being taken, and nothing of it is
/// kept but this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum FirstMessage {
    /// Nothing is there, or only the beginning of a message. The process may have read the message already.
    #[default]
    Nothing,
    Mcp {
        /// The name in `clientInfo`, bounded and without control characters; absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        client: Option<String>,
    },
    /// None was seen, but the settings of an agent declare the process as a server of that protocol.
    Declared {
        /// The name that the settings give it, bounded and without control characters.
        name: String,
    },
    /// What agents hand to a program that they call at an event of theirs.
    Hook,
    /// A header `Content-Length:`: a language server or a debug adapter.
    Framed,
    Other,
    /// It cannot be read: the process is gone, has other streams now, or does not answer.
    Unknown,
}

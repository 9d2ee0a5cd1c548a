//! How an edge by which a server is reached is called, and what can be done over it: the explanation for a person.

use super::{Edge, Way};
use crate::model::scene::Endpoint;

/// The kind of what joins the two (`stdin`, `stdout`, `connection`, `pipe`, `listener`, `terminal` ..), and what who is
/// named first can do, in words that follow its name.
pub const fn words(edge: Edge, endpoint: Option<&Endpoint>) -> (&'static str, &'static str) {
    match (edge.way, endpoint) {
        (Way::Input, _) => ("stdin", "can write to its standard input"),
        (Way::Output, _) => ("stdout", "reads its standard output"),
        (Way::Trace, _) => ("trace", "debugs it"),
        (Way::Depend, Some(Endpoint::Trace)) => ("trace", "is debugged by it"),
        (Way::Depend, Some(Endpoint::Terminal)) => ("terminal", "works in a terminal that it opened"),
        (Way::Depend, Some(Endpoint::PidNamespace)) => ("pid_namespace", "would end with its PID namespace"),
        (Way::Depend, Some(Endpoint::ParentDeath)) => ("parent_death", "is to end with it, its parent"),
        (Way::Depend, _) => ("device", "uses a file system or a device that it serves"),
        (Way::Use, Some(Endpoint::Pipe { .. })) => ("pipe", "has the other end of a pipe of it"),
        (Way::Use, Some(Endpoint::Open { .. })) => ("listener", "may call a socket at which it listens"),
        (Way::Use, Some(Endpoint::Shared)) => {
            ("open_file", "shares an open file with it, by which it can wake it")
        }
        (Way::Use, Some(Endpoint::Memory { .. })) => ("memory", "shares memory with it"),
        (Way::Use, Some(Endpoint::Call)) => ("call", "called a port at which it listens, a few minutes ago"),
        (Way::Use, _) => ("connection", "is connected with it"),
    }
}

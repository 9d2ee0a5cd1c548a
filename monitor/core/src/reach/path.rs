//! The path by which a server is reached, in words: the explanation for a person.

use super::{Edge, Reach, Way};
use crate::model::{
    ProcessId,
    scene::{Endpoint, Scene},
};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who can reach the next one; nobody who can be named if absent.
    pub process: Option<ProcessId>,
    /// The kind of what joins the two: `stdin`, `stdout`, `connection`, `pipe`, `listener`, `terminal` ..
    pub by: &'static str,
    /// What it can do, in words that follow the name of the process.
    pub via: &'static str,
}

impl Reach {
    /// The steps from a root to this candidate.
    pub fn steps_to(&self, scene: &Scene, party: usize) -> Vec<Step> {
        let of = |edge: Edge| {
            let (by, via) = words(edge, scene.endpoint(edge.endpoint));
            Step { process: edge.from.process(), by, via }
        };
        self.path_to(party).into_iter().map(of).collect()
    }
}

fn words(edge: Edge, endpoint: Option<&Endpoint>) -> (&'static str, &'static str) {
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

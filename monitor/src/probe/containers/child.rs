//! The helper that talks to a container engine. It is this program once more, without any capability. The reply is
//! read and parsed here, so a reply that crashes the parser crashes only the helper.

use std::{
    io::{self, Write as _},
    os::fd::OwnedFd,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    process::{DumpableBehavior, set_dumpable_behavior},
    thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs},
};
use serde::{Deserialize, Serialize};

use super::{
    http::{Method, call},
    told::{self, Found, Listed},
};
use crate::{os::own, probe::helper_output};
use orphand_core::model::ContainerNames;

/// The first command-line argument that makes the program such a helper; see [`engine_child`].
pub const ENGINE_ARGUMENT: &str = "__ask-engine";

/// The longest answer that is read from the helper, in bytes.
const LONGEST: usize = 64 * 1024;

/// What the helper is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Question {
    /// Which running containers fit.
    Find {
        /// The name that the client gave.
        name: Option<String>,
        /// The image.
        image: Option<String>,
        /// When the client was started, in seconds since 1970.
        from: u64,
        /// The latest creation of its container.
        to: u64,
    },
    /// The container with this id, if it runs.
    Inspect {
        /// The id.
        id: String,
        /// Whether a monitor holds its standard streams.
        monitored: bool,
    },
    /// What the container with this id is.
    Name {
        /// The id.
        id: String,
    },
    /// Stop a container.
    Stop {
        /// What the engine must still tell of it.
        expected: Found,
        /// The time from SIGTERM to SIGKILL.
        seconds: u64,
        /// Whether a monitor holds its standard streams.
        monitored: bool,
    },
}

/// What the helper found or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// The containers that fit.
    Found(Vec<Found>),
    /// What the container is, and the number of its first process.
    Named(ContainerNames, u32),
    /// No such container runs.
    Unknown,
    /// The container has been stopped, or had ended before.
    Stopped,
    /// The engine tells something else of the container than before. It was not stopped.
    Changed,
}

type Answer = Result<Told, String>;

/// The main function of the helper. Standard input is the engine's socket, opened with `O_PATH`; the second argument
/// is the question, and the answer goes to standard output. Returns whether the answer could be written.
pub fn engine_child() -> bool {
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    let confined = set_dumpable_behavior(DumpableBehavior::NotDumpable).is_ok()
        && set_no_new_privs(true).is_ok()
        && set_capabilities(None, none).is_ok();
    let asked = std::env::args().nth(2).and_then(|asked| serde_json::from_str(&asked).ok());
    let Some(question) = asked.filter(|_| confined) else { return false };
    let answer: Answer = answer(&question);
    serde_json::to_vec(&answer).is_ok_and(|answer| io::stdout().write_all(&answer).is_ok())
}

fn answer(question: &Question) -> Answer {
    let socket = own::path_of(&io::stdin());
    match question {
        Question::Find { name, image, from, to } => {
            // {"status":["running"]}
            let path = "/containers/json?filters=%7B%22status%22%3A%5B%22running%22%5D%7D";
            let (status, body) = call(&socket, Method::Get, path)?;
            let listed: Vec<Listed> = told::parse(status, &body)?;
            let mut found = Vec::new();
            let fits = |one: &&Listed| one.fits(name.as_deref(), image.as_deref(), *from..=*to);
            // Two are as many as too many.
            for one in listed.iter().filter(fits).take(8) {
                if !told::is_id(&one.id) {
                    return Err("an id is none".to_owned());
                }
                let (status, body) = call(&socket, Method::Get, &format!("/containers/{}/json", one.id))?;
                found.extend(told::container(told::parse(status, &body)?, false));
            }
            Ok(Told::Found(found))
        }
        Question::Inspect { id, monitored } => {
            if !told::is_id(id) {
                return Err(format!("`{id}` is no id"));
            }
            let (status, body) = call(&socket, Method::Get, &format!("/containers/{id}/json"))?;
            if status == 404 {
                return Ok(Told::Unknown);
            }
            let found = told::container(told::parse(status, &body)?, *monitored);
            Ok(Told::Found(found.into_iter().filter(|found| found.id == *id).collect()))
        }
        Question::Name { id } => {
            if !told::is_id(id) {
                return Err(format!("`{id}` is no id"));
            }
            let (status, body) = call(&socket, Method::Get, &format!("/containers/{id}/json"))?;
            if status == 404 {
                return Ok(Told::Unknown);
            }
            let inspected: told::Inspected = told::parse(status, &body)?;
            Ok(inspected.names(id).map_or(Told::Unknown, |(names, first)| Told::Named(names, first)))
        }
        Question::Stop { expected, seconds, monitored } => {
            let id = &expected.id;
            if !told::is_id(id) {
                return Err(format!("`{id}` is no id"));
            }
            let (status, body) = call(&socket, Method::Get, &format!("/containers/{id}/json"))?;
            if status == 404 {
                return Ok(Told::Stopped);
            }
            let inspected: told::Inspected = told::parse(status, &body)?;
            if inspected.has_ended(id) {
                return Ok(Told::Stopped);
            }
            if told::container(inspected, *monitored).as_ref() != Some(expected) {
                return Ok(Told::Changed);
            }
            let (status, _) = call(&socket, Method::Post, &format!("/containers/{id}/stop?t={seconds}"))?;
            match status {
                // Stopped; had ended before; is not there any more.
                204 | 304 | 404 => Ok(Told::Stopped),
                _ => Err(format!("the engine answered with status {status}")),
            }
        }
    }
}

/// Starts a helper that asks the engine at `socket`, and returns its answer.
pub(super) fn ask(socket: OwnedFd, question: &Question, patience: Duration) -> Answer {
    let failed = |error: &dyn std::fmt::Display| format!("the helper for the engine failed: {error}");
    let argument = serde_json::to_string(question).map_err(|error| failed(&error))?;
    let mut command = Command::new(own::PROGRAM);
    command
        .args([ENGINE_ARGUMENT, &argument])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let answer =
        child.stdout.take().map_or_else(|| Ok(Vec::new()), |out| helper_output::read(out, patience, LONGEST));
    // The helper has ended, or has said all that is read from it.
    let _ = child.kill();
    let status = child.wait().map_err(|error| failed(&error))?;
    let answer = match answer {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            return Err(format!("the engine has not answered for {} s", patience.as_secs()));
        }
        answer => answer.map_err(|error| failed(&error))?,
    };
    serde_json::from_slice(&answer).unwrap_or_else(|_| Err(failed(&status)))
}

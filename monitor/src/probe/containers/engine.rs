//! What a helper does at a container engine ([`helper`]): three requests, and one for `orphand doctor`.
//!
//! Invariant: what an engine replies is parsed in the helper only, and of it only what is checked here goes back. HTTP/1.0
//! is spoken over its unix socket: the reply ends with the connection and has no chunks.

use std::{
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, to_value};

use super::clients::Door;
use crate::{
    helper::{self, HelperError, Order, Task},
    os::own,
};
use orphand_core::{
    model::text::sanitise,
    recognise::{is_container_id, is_same_image},
};

/// The longest reply that is read, in bytes: a list of thousands of containers.
const LONGEST: u64 = 8 << 20;
/// The most headers of a reply.
const HEADERS: usize = 64;
/// The most containers of one image that are told apart.
const MOST: usize = 64;
/// The label by which docker's MCP gateway names the server that it starts in a container, and the most characters of
/// such a name.
const GATEWAY_NAME: &str = "/Config/Labels/docker-mcp-name";
const NAME: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineVersion {
    #[serde(rename = "ApiVersion")]
    pub api: String,
    #[serde(rename = "Version")]
    pub engine: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Question {
    /// Which running containers with a standard input fit a client: a list of [`Found`].
    Find {
        name: Option<String>,
        image: Option<String>,
        /// When the client was started, in seconds since 1970.
        from: u64,
    },
    /// The container with this id, if it runs: a list of [`Found`].
    Inspect { id: String },
    /// Stop this container, if its engine still tells the same of it: whether it has been stopped, or had ended before.
    Stop {
        expected: Found,
        /// Whether a monitor holds its standard streams.
        monitored: bool,
        seconds: u64,
    },
    /// An [`EngineVersion`].
    Version,
}

/// A running container, as far as what is told of it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    pub id: String,
    pub name: String,
    pub image: String,
    /// The name that docker's MCP gateway gave to the server in it.
    pub server: Option<String>,
    /// Its first process, as the engine sees it.
    pub pid: u32,
    /// Whether others may use it: it has ports, or somebody runs a further program in it.
    pub shared: bool,
    /// Whether it has a standard input that is no terminal, and is neither paused nor restarted.
    pub fed: bool,
    /// Whether that input ends with its client, as the engine tells.
    pub once: bool,
    /// When it was made, in nanoseconds since 1970, if that is understood.
    pub created: Option<i64>,
}

impl Found {
    /// What `GET /containers/ID/json` tells of a container that runs. What is not understood counts as what keeps it.
    fn read(told: &Value) -> Option<Self> {
        let text = |at: &str| told.pointer(at).and_then(Value::as_str);
        let is = |at: &str| told.pointer(at) == Some(&Value::Bool(true));
        let is_not = |at: &str| matches!(told.pointer(at), None | Some(Value::Bool(false)));
        let id = text("/Id").filter(|id| is_container_id(id) && is("/State/Running"))?;
        let pid = told.pointer("/State/Pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok());
        let has_ports = match told.pointer("/NetworkSettings/Ports") {
            None | Some(Value::Null) => false,
            // A port that is not published has no value.
            Some(Value::Object(ports)) => ports.values().any(|port| !port.is_null()),
            Some(_) => true,
        };
        let is_visited = match told.get("ExecIDs") {
            None | Some(Value::Null) => false,
            Some(programs) => programs != &Value::Array(Vec::new()),
        };
        // With nanoseconds, in the form of RFC 3339.
        let created = text("/Created").and_then(|created| created.parse::<Timestamp>().ok());
        Some(Self {
            id: id.to_owned(),
            name: text("/Name").unwrap_or_default().trim_start_matches('/').to_owned(),
            image: text("/Config/Image").unwrap_or_default().to_owned(),
            server: text(GATEWAY_NAME).map(short),
            pid: pid.unwrap_or_default(),
            shared: has_ports || is_visited,
            fed: is("/Config/OpenStdin")
                && ["/Config/Tty", "/State/Paused", "/State/Restarting"].into_iter().all(is_not)
                && pid.is_some_and(|pid| pid > 1),
            once: is("/Config/StdinOnce"),
            created: created.and_then(|created| i64::try_from(created.as_nanosecond()).ok()),
        })
    }

    /// Whether it has a standard input that ends with its client. podman says `StdinOnce` of no container; there the host
    /// shows it, because the monitor closes the input when its client has gone.
    pub(super) fn is_fed(&self, monitored: bool) -> bool {
        self.fed && (self.once || monitored)
    }

    /// Whether it is the same container, and nobody may use it.
    fn is_still(&self, expected: &Self, monitored: bool) -> bool {
        let facts = |of: &Self| (of.id.clone(), of.name.clone(), of.image.clone(), of.pid);
        facts(self) == facts(expected) && self.is_fed(monitored) && !self.shared
    }
}

/// Whether it is the container with this id, and does not run any more.
fn has_ended(told: &Value, id: &str) -> bool {
    let restarts = told.pointer("/State/Restarting").is_some_and(|restarts| restarts != &Value::Bool(false));
    told.get("Id").and_then(Value::as_str) == Some(id)
        && told.pointer("/State/Running") == Some(&Value::Bool(false))
        && !restarts
}

/// The beginning of a text that an engine wrote, on one line.
fn short(text: &str) -> String {
    text.chars().take(NAME).collect()
}

/// An entry of `GET /containers/json`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Listed {
    id: String,
    names: Vec<String>,
    image: String,
    /// In seconds since 1970.
    created: u64,
}

impl Listed {
    /// Whether it has this name and is no older than a client that was started then: a name is unique for an engine.
    /// Without a name: whether it is of this image.
    fn fits(&self, name: Option<&str>, image: Option<&str>, from: u64) -> bool {
        match (name, image) {
            (Some(name), _) => {
                self.created >= from && self.names.iter().any(|one| one.trim_start_matches('/') == name)
            }
            (None, Some(image)) => is_same_image(&self.image, image),
            (None, None) => false,
        }
    }
}

/// The answer to a question, in the helper. The one file is the engine's socket, opened with `O_PATH`.
pub(in crate::probe) fn help(question: &[u8], files: &[OwnedFd]) -> Option<Vec<u8>> {
    let [socket] = files else { return None };
    helper::answered(question, |question: Question| answer(&own::path_of(socket), &question))
}

fn answer(socket: &str, question: &Question) -> Result<Value, String> {
    match question {
        Question::Find { name, image, from } => {
            // {"status":["running"]}
            let path = "/containers/json?filters=%7B%22status%22%3A%5B%22running%22%5D%7D";
            let mut listed: Vec<Listed> = parse(call(socket, "GET", path)?)?;
            listed.retain(|one| one.fits(name.as_deref(), image.as_deref(), *from));
            if listed.len() > MOST {
                return Err(format!("there are more than {MOST} containers of one image"));
            }
            let mut found = Vec::new();
            for one in listed {
                // It may have ended since.
                let told = inspect(socket, &one.id)?.and_then(|told| Found::read(&told));
                found.extend(told.filter(|found| found.is_fed(false)));
            }
            match found.iter().find(|one| one.created.is_none()) {
                Some(one) => Err(format!("when {} was made is not understood", one.id)),
                None => to_value(found).map_err(|error| error.to_string()),
            }
        }
        Question::Inspect { id } => {
            let found = inspect(socket, id)?.and_then(|told| Found::read(&told));
            let found = Vec::from_iter(found.filter(|found| found.id == *id));
            to_value(found).map_err(|error| error.to_string())
        }
        Question::Stop { expected, monitored, seconds } => {
            let id = &expected.id;
            let Some(told) = inspect(socket, id)? else { return Ok(true.into()) };
            if has_ended(&told, id) {
                return Ok(true.into());
            }
            if !Found::read(&told).is_some_and(|now| now.is_still(expected, *monitored)) {
                return Ok(false.into());
            }
            match call(socket, "POST", &format!("/containers/{id}/stop?t={seconds}"))?.0 {
                // Stopped; had ended before; is not there any more.
                204 | 304 | 404 => Ok(true.into()),
                status => Err(format!("the engine answered with status {status}")),
            }
        }
        Question::Version => {
            let EngineVersion { api, engine } = parse(call(socket, "GET", "/version")?)?;
            let version = EngineVersion { api: short(&api), engine: short(&engine) };
            to_value(version).map_err(|error| error.to_string())
        }
    }
}

/// What the engine tells of the container with this id; `None` if there is none.
fn inspect(socket: &str, id: &str) -> Result<Option<Value>, String> {
    if !is_container_id(id) {
        return Err(format!("`{id}` is no id"));
    }
    let reply = call(socket, "GET", &format!("/containers/{id}/json"))?;
    if reply.0 == 404 { Ok(None) } else { parse(reply).map(Some) }
}

fn parse<T: DeserializeOwned>((status, body): (u16, Vec<u8>)) -> Result<T, String> {
    if status != 200 {
        return Err(format!("the engine answered with status {status}"));
    }
    serde_json::from_slice(&body).map_err(|error| format!("the engine's reply is not understood: {error}"))
}

/// Makes a request; gives the status and the body. The caller limits the time.
fn call(socket: &str, method: &str, path: &str) -> Result<(u16, Vec<u8>), String> {
    let said = |error: std::io::Error| format!("cannot talk to the engine: {error}");
    let mut stream = UnixStream::connect(socket).map_err(said)?;
    let request = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(said)?;
    let mut reply = Vec::new();
    stream.take(LONGEST + 1).read_to_end(&mut reply).map_err(said)?;
    split(&reply)
}

/// Splits a reply into status and body.
fn split(reply: &[u8]) -> Result<(u16, Vec<u8>), String> {
    if reply.len() as u64 > LONGEST {
        return Err("the engine's reply is too long".to_owned());
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let (Ok(httparse::Status::Complete(end)), Some(status)) = (head.parse(reply), head.code) else {
        return Err("the engine's reply is no HTTP".to_owned());
    };
    let body = reply.get(end..).unwrap_or_default().to_vec();
    for header in head.headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err("the engine's reply has chunks that were not asked for".to_owned());
        }
        let length = || std::str::from_utf8(header.value).ok()?.trim().parse().ok();
        if header.name.eq_ignore_ascii_case("content-length") && length() != Some(body.len()) {
            return Err("the engine's reply is not complete".to_owned());
        }
    }
    Ok((status, body))
}

/// Starts a helper that asks the engine behind `door`, and returns its answer, which has the type of the question.
pub(super) fn ask<A: DeserializeOwned>(
    door: Door,
    question: &Question,
    patience: Duration,
) -> Result<A, String> {
    let (user, files) = (door.asker(), vec![door.socket]);
    let order = Order { task: Task::Engine, files, user, namespace: None, patience };
    let said: Result<A, String> = helper::ask(order, question).unwrap_or_else(|error| {
        Err(match error {
            HelperError::Silent(patience) => {
                format!("the engine has not answered for {} s", patience.as_secs())
            }
            error => format!("the helper for the engine failed: {error}"),
        })
    });
    // It may contain what the engine wrote.
    said.map_err(|why| sanitise(&why.chars().take(256).collect::<String>()).into_owned())
}

#[cfg(test)]
mod tests;

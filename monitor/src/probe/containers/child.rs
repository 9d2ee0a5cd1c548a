//! What a helper does at a container engine ([`helper`]): three requests, and one for `orphand doctor`.
//!
//! Invariant: what an engine replies is parsed in the helper only, and of it only what is checked here goes back.

use std::{os::fd::OwnedFd, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    http::call,
    told::{self, Found, Inspected, Listed},
};
use crate::{
    helper::{self, HelperError, Order, Task},
    os::own,
};
use orphand_core::model::{ContainerNames, text::sanitise};

/// The most containers of one image that are told apart.
const MOST: usize = 64;

/// The versions of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineVersion {
    /// Of its interface.
    #[serde(rename = "ApiVersion")]
    pub api: String,
    /// Of the engine itself.
    #[serde(rename = "Version")]
    pub engine: String,
}

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
    /// What the engine is.
    Version,
}

/// What the helper found or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// The running containers that fit.
    Found(Vec<Found>),
    /// What the container is, and the number of its first process; nothing if no such container runs.
    Named(Option<(ContainerNames, u32)>),
    /// Whether the container has been stopped, or had ended before. If not, the engine tells something else of it than
    /// before.
    Stopped(bool),
    /// The versions of the engine.
    Version(EngineVersion),
}

type Answer = Result<Told, String>;

/// The answer to a question, in the helper. The one file is the engine's socket, opened with `O_PATH`.
pub(in crate::probe) fn help(question: &[u8], files: &[OwnedFd]) -> Option<Vec<u8>> {
    let [socket] = files else { return None };
    helper::answered(question, |question: Question| answer(&own::path_of(socket), &question))
}

pub(super) fn answer(socket: &str, question: &Question) -> Answer {
    match question {
        Question::Find { name, image, from } => {
            // {"status":["running"]}
            let path = "/containers/json?filters=%7B%22status%22%3A%5B%22running%22%5D%7D";
            let (status, body) = call(socket, "GET", path)?;
            let mut listed: Vec<Listed> = told::parse(status, &body)?;
            listed.retain(|one| one.fits(name.as_deref(), image.as_deref(), *from));
            if listed.len() > MOST {
                return Err(format!("there are more than {MOST} containers of one image"));
            }
            let mut found = Vec::new();
            for one in listed {
                // It may have ended since.
                found.extend(inspect(socket, &one.id)?.and_then(|inspected| inspected.found(false)));
            }
            match found.iter().find(|one| one.created.is_none()) {
                Some(one) => Err(format!("when {} was made is not understood", one.id)),
                None => Ok(Told::Found(found)),
            }
        }
        Question::Inspect { id, monitored } => {
            let found = inspect(socket, id)?.and_then(|inspected| inspected.found(*monitored));
            Ok(Told::Found(found.into_iter().filter(|found| found.id == *id).collect()))
        }
        Question::Name { id } => {
            Ok(Told::Named(inspect(socket, id)?.and_then(|inspected| inspected.names(id))))
        }
        Question::Stop { expected, seconds, monitored } => {
            let id = &expected.id;
            let Some(inspected) = inspect(socket, id)? else { return Ok(Told::Stopped(true)) };
            if inspected.has_ended(id) {
                return Ok(Told::Stopped(true));
            }
            let now = inspected.found(*monitored);
            if now.map(|now| Found { created: None, ..now }).as_ref() != Some(expected) {
                return Ok(Told::Stopped(false));
            }
            let (status, _) = call(socket, "POST", &format!("/containers/{id}/stop?t={seconds}"))?;
            match status {
                // Stopped; had ended before; is not there any more.
                204 | 304 | 404 => Ok(Told::Stopped(true)),
                _ => Err(format!("the engine answered with status {status}")),
            }
        }
        Question::Version => {
            let (status, body) = call(socket, "GET", "/version")?;
            let EngineVersion { api, engine } = told::parse(status, &body)?;
            Ok(Told::Version(EngineVersion { api: short(&api), engine: short(&engine) }))
        }
    }
}

/// What the engine tells of the container with this id; `None` if there is none.
fn inspect(socket: &str, id: &str) -> Result<Option<Inspected>, String> {
    if !told::is_id(id) {
        return Err(format!("`{id}` is no id"));
    }
    let (status, body) = call(socket, "GET", &format!("/containers/{id}/json"))?;
    if status == 404 { Ok(None) } else { told::parse(status, &body).map(Some) }
}

/// The beginning of a text that an engine wrote, on one line.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Starts a helper that asks the engine at `socket`, and returns its answer.
pub(super) fn ask(socket: OwnedFd, question: &Question, patience: Duration) -> Answer {
    let order = Order { task: Task::Engine, files: vec![socket], user: None, namespace: None, patience };
    let said: Answer = helper::ask(order, question).unwrap_or_else(|error| {
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
mod tests {
    use std::{
        io::{Read as _, Write as _},
        os::unix::net::UnixListener,
        thread,
    };

    use super::*;

    /// What the helper answers of an engine that gives this reply.
    fn told(reply: &'static [u8]) -> Answer {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let engine = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut piece = [0; 64];
                let read = stream.read(&mut piece).unwrap();
                assert!(read > 0, "{request:?}");
                request.extend_from_slice(&piece[..read]);
            }
            assert!(request.starts_with(b"GET /version HTTP/1.0\r\n"));
            stream.write_all(reply).unwrap();
        });
        let said = answer(path.to_str().unwrap(), &Question::Version);
        engine.join().unwrap();
        said
    }

    #[test]
    fn an_engine_tells_its_version_or_is_no_engine() {
        let version =
            |api: &str| Told::Version(EngineVersion { api: api.to_owned(), engine: "26.1.5".to_owned() });
        let well = told(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"Version\":\"26.1.5\",\"ApiVersion\":\"1.45\",\"Os\":\"linux\"}");
        assert_eq!(well, Ok(version("1.45")));
        let long = format!(
            "HTTP/1.0 200 OK\r\n\r\n{{\"Version\":\"26.1.5\",\"ApiVersion\":\"{}\"}}",
            "1".repeat(1 << 20)
        );
        assert_eq!(told(Box::leak(long.into_bytes().into_boxed_slice())), Ok(version(&"1".repeat(64))));
        for reply in [
            &b""[..],
            b"SSH-2.0\r\n\r\n{}",
            b"HTTP/1.0 403 Forbidden\r\n\r\n{\"Version\":\"1\",\"ApiVersion\":\"1\"}",
            b"HTTP/1.0 200 OK\r\n\r\n[]",
        ] {
            assert!(told(reply).is_err());
        }
    }
}

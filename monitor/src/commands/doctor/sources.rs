//! The checks of what is only asked where it is configured: the registry of sessions, and the engines of containers.

use std::{io, path::Path, time::Duration};

use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    runtime::Builder,
    time::timeout,
};

use crate::{
    config::{Config, Sessions},
    daemon::reload,
    probe::registry,
};
use orphand_core::model::Check;

/// How long an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most bytes of an answer of an engine.
const MOST: u64 = 1 << 16;

/// The checks of the registry and of each engine that is configured; of others none.
pub(super) fn all(config: &Config) -> Vec<Check> {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return vec![Check::wrong("sources", format!("cannot ask anybody: {error}"))],
    };
    runtime.block_on(async {
        let mut checks = Vec::new();
        if let Some(sessions) = &config.sessions {
            checks.push(registry(sessions).await);
        }
        for (name, path) in [("Docker", &config.containers.docker), ("podman", &config.containers.podman)] {
            if let Some(path) = path {
                checks.push(engine(name, path).await);
            }
        }
        checks
    })
}

async fn registry(sessions: &Sessions) -> Check {
    let (name, options) = ("session registry", reload::registry(sessions));
    let place = &options.place;
    match registry::check(&options).await {
        Ok(()) => Check::ok(name, format!("{place} answers; its user may use INFO and EXISTS")),
        Err(why) => {
            Check::wrong(name, format!("{place} cannot be asked, so no session counts as expired: {why}"))
        }
    }
}

async fn engine(name: &str, path: &Path) -> Check {
    let (check, socket) = (format!("engine {name}"), path.display());
    match timeout(PATIENCE, version(path)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(Version { api, engine }) => {
            Check::ok(&check, format!("{socket} answers: version {engine}, API version {api}"))
        }
        Err(error) => Check::wrong(
            &check,
            format!(
                "{socket} does not answer ({error}), so orphans in its containers are reported and stay: is {name} running, and is this its socket?"
            ),
        ),
    }
}

/// What an engine says of itself.
#[derive(Debug, Deserialize)]
struct Version {
    #[serde(rename = "ApiVersion")]
    api: String,
    #[serde(rename = "Version")]
    engine: String,
}

/// Asks an engine for its version. HTTP/1.0: the reply ends with the connection and has no chunks.
async fn version(path: &Path) -> io::Result<Version> {
    let mut stream = UnixStream::connect(path).await?;
    stream.write_all(b"GET /version HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
    let mut reply = Vec::new();
    stream.take(MOST).read_to_end(&mut reply).await?;
    let body = reply.windows(4).position(|four| four == b"\r\n\r\n").and_then(|end| reply.get(end + 4..));
    let is_good = reply.starts_with(b"HTTP/1.") && reply.get(8..13) == Some(b" 200 ");
    let version = body.filter(|_| is_good).and_then(|body| serde_json::from_slice(body).ok());
    version.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it does not answer like an engine"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        os::unix::net::UnixListener,
        thread,
    };

    use super::*;
    use orphand_core::model::Health;

    fn config(text: &str) -> Config {
        Config::parse(text, "config.toml".as_ref()).unwrap()
    }

    /// What doctor says of an engine that gives this answer.
    fn told(answer: &'static [u8]) -> Check {
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
            stream.write_all(answer).unwrap();
        });
        let mut checks = all(&config(&format!("[containers]\ndocker = \"{}\"\n", path.display())));
        engine.join().unwrap();
        assert_eq!(checks.len(), 1);
        checks.remove(0)
    }

    #[test]
    fn what_is_not_configured_is_not_asked() {
        assert_eq!(all(&config("")), []);
    }

    #[test]
    fn an_engine_tells_its_version_or_is_no_engine() {
        let well = told(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"Version\":\"26.1.5\",\"ApiVersion\":\"1.45\",\"Os\":\"linux\"}");
        assert_eq!(well.is, Health::Ok);
        assert!(well.found.ends_with("answers: version 26.1.5, API version 1.45"), "{}", well.found);
        for answer in [
            &b""[..],
            b"SSH-2.0\r\n\r\n{}",
            b"HTTP/1.0 403 Forbidden\r\n\r\n{\"Version\":\"1\",\"ApiVersion\":\"1\"}",
            b"HTTP/1.0 200 OK\r\n\r\n[]",
        ] {
            let other = told(answer);
            assert_eq!(other.is, Health::Wrong);
            assert!(other.found.contains("is Docker running"), "{}", other.found);
        }
    }

    #[test]
    fn what_is_not_there_is_told() {
        let checks = all(&config(
            "[sessions]\nredis = \"redis://127.0.0.1:1/0\"\n[containers]\npodman = \"/nowhere/podman.sock\"\n",
        ));
        let of = |name: &str| checks.iter().find(|check| check.name == name).unwrap();
        let (registry, engine) = (of("session registry"), of("engine podman"));
        assert_eq!((registry.is, engine.is), (Health::Wrong, Health::Wrong));
        assert!(registry.found.contains("127.0.0.1:1/0 cannot be asked"), "{}", registry.found);
        assert!(engine.found.contains("/nowhere/podman.sock does not answer"), "{}", engine.found);
    }
}

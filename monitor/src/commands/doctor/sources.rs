//! The checks of what is only asked where it is configured: the registry of sessions, and the engines of containers.

use std::{path::Path, sync::mpsc, thread, time::Duration};

use tokio::runtime::Builder;

use crate::{
    config::{Config, Sessions},
    daemon::reload,
    probe::{EngineVersion, registry},
};
use orphand_core::model::Check;

/// How long an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The checks of the registry and of each engine that is configured; of others none.
pub(super) fn all(config: &Config) -> Vec<Check> {
    let engines = [("Docker", &config.containers.docker), ("podman", &config.containers.podman)];
    let engines = engines.into_iter().filter_map(|(name, path)| Some(engine(name, path.as_ref()?)));
    config.sessions.iter().map(registry).chain(engines).collect()
}

fn registry(sessions: &Sessions) -> Check {
    let (name, options) = ("session registry", reload::registry(sessions));
    let place = &options.place;
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Check::wrong(name, format!("cannot ask it: {error}")),
    };
    match runtime.block_on(registry::check(&options)) {
        Ok(()) => Check::ok(name, format!("{place} answers; its user may use INFO and EXISTS")),
        Err(why) => {
            Check::wrong(name, format!("{place} cannot be asked, so no session counts as expired: {why}"))
        }
    }
}

fn engine(name: &str, path: &Path) -> Check {
    let (check, socket) = (format!("engine {name}"), path.display());
    match version(path) {
        Ok(EngineVersion { api, engine }) => {
            Check::ok(&check, format!("{socket} answers: version {engine}, API version {api}"))
        }
        Err(why) => Check::wrong(
            &check,
            format!(
                "{socket} does not answer ({why}), so orphans in its containers are reported and stay: is {name} running, and is this its socket?"
            ),
        ),
    }
}

/// What the engine says of itself. A thread that waits for longer than [`PATIENCE`] is left behind: the command ends soon.
fn version(socket: &Path) -> Result<EngineVersion, String> {
    let (tell, told) = mpsc::channel();
    let socket = socket.to_path_buf();
    let ask = move || tell.send(EngineVersion::of(&socket));
    thread::Builder::new().spawn(ask).map_err(|error| format!("cannot start a thread: {error}"))?;
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        os::unix::net::UnixListener,
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
    fn an_engine_that_does_not_answer_is_told_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker.sock");
        let _silent = UnixListener::bind(&path).unwrap();
        let check = engine("Docker", &path);
        assert_eq!(check.is, Health::Wrong);
        assert!(check.found.contains("(no answer in time)"), "{}", check.found);
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

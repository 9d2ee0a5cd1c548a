//! The checks of what is only asked where it is configured: the registry of sessions, and the engines of containers.

use tokio::runtime::Builder;

use crate::{
    config::{Config, Sessions},
    daemon::reload,
    probe::{EngineVersion, Engines, registry},
};
use orphand_core::model::Check;

/// The checks of the registry and of each engine that is configured; of others none.
pub(super) fn all(config: &Config) -> Vec<Check> {
    let (docker, podman) = (config.containers.docker.clone(), config.containers.podman.clone());
    let asked = [("Docker", docker.clone()), ("podman", podman.clone())];
    let engines = Engines { docker, podman };
    let checks = asked.into_iter().filter_map(|(name, path)| {
        let socket = path?.display().to_string();
        Some(engine(name, &socket, engines.version(&name.to_lowercase())))
    });
    config.sessions.iter().map(registry).chain(checks).collect()
}

fn registry(sessions: &Sessions) -> Check {
    let (name, options) = ("session registry", reload::registry(sessions));
    let place = options.redis.place();
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Check::wrong(name, format!("cannot ask it: {error}")),
    };
    let checked = runtime.block_on(registry::check(&options));
    runtime.shutdown_background();
    match checked {
        Ok(()) => Check::ok(name, format!("{place} answers; its user may use INFO and EXISTS")),
        Err(why) => {
            Check::wrong(name, format!("{place} cannot be asked, so no session counts as expired: {why}"))
        }
    }
}

fn engine(name: &str, socket: &str, version: Result<EngineVersion, String>) -> Check {
    let check = format!("engine {name}");
    match version {
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

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Health;

    fn config(text: &str) -> Config {
        Config::parse(text, "config.toml".as_ref()).unwrap()
    }

    #[test]
    fn what_is_not_configured_is_not_asked() {
        assert_eq!(all(&config("")), []);
    }

    #[test]
    fn an_engine_tells_its_version_or_is_no_engine() {
        let version = EngineVersion { api: "1.45".to_owned(), engine: "26.1.5".to_owned() };
        let well = engine("Docker", "/run/docker.sock", Ok(version));
        assert_eq!(well.is, Health::Ok);
        assert!(well.found.ends_with("answers: version 26.1.5, API version 1.45"), "{}", well.found);
        let other = engine("Docker", "/run/docker.sock", Err("no answer".to_owned()));
        assert_eq!(other.is, Health::Wrong);
        assert!(
            other.found.contains("(no answer), so") && other.found.contains("is Docker running"),
            "{}",
            other.found
        );
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

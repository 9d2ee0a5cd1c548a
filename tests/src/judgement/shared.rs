//! What all situations share: the registry of sessions, Docker, and podman. Each is started if a situation needs it.

use anyhow::Result;

use super::{script::Script, stated::Stated};
use crate::{
    engine::{Engine, IMAGE, Kind},
    redis::Redis,
    scene::Scene,
};

/// The services that situations share. They end with it.
#[derive(Debug)]
pub struct Shared {
    redis: Option<Redis>,
    docker: Option<Engine>,
    podman: Option<Engine>,
}

impl Shared {
    /// Starts what one of these needs. Fails if that cannot run here.
    pub fn start(s: &Scene, scripts: &[Script]) -> Result<Self> {
        let needed = |needs: fn(&Stated) -> bool| scripts.iter().any(|script| needs(&script.stated));
        let redis = needed(Stated::needs_redis).then(|| Redis::start(s)).transpose()?;
        let docker = needed(Stated::needs_docker).then(|| Engine::start(s, Kind::Docker)).transpose()?;
        let podman = needed(Stated::needs_podman).then(|| Engine::start(s, Kind::Podman)).transpose()?;
        if let Some(podman) = &podman {
            podman.serve(s)?;
        }
        Ok(Self { redis, docker, podman })
    }

    /// What the daemon is told of them.
    pub fn config(&self) -> String {
        let sessions = self.redis.as_ref().map(|redis| {
            let place = format!("redis://127.0.0.1:{}/0", redis.port);
            format!("[sessions]\nredis = \"{place}\"\nidle = \"3s\"\n")
        });
        let engines = [("docker", &self.docker), ("podman", &self.podman)];
        let engines =
            engines.into_iter().filter_map(|(name, engine)| Some((name, engine.as_ref()?.socket())));
        let lines = engines.map(|(name, socket)| format!("{name} = \"{}\"\n", socket.display()));
        let engines = lines.collect::<Vec<String>>().concat();
        let containers = (!engines.is_empty()).then(|| format!("[containers]\n{engines}"));
        sessions.into_iter().chain(containers).collect()
    }

    /// The variables by which a situation finds what it needs.
    pub fn environment(&self, stated: &Stated) -> Vec<(&'static str, String)> {
        let redis = self.redis.as_ref().filter(|_| stated.needs_redis());
        let redis = redis.map(|redis| ("ORPHAND_SITUATION_REDIS", redis.port.to_string()));
        let docker = self.docker.as_ref().filter(|_| stated.needs_docker());
        let docker = docker.into_iter().flat_map(|docker| {
            [
                ("ORPHAND_SITUATION_DOCKER", docker.folder().display().to_string()),
                ("ORPHAND_SITUATION_IMAGE", IMAGE.to_owned()),
                ("ORPHAND_SITUATION_GROUP", docker.usual_group()),
            ]
        });
        let podman = self.podman.as_ref().filter(|_| stated.needs_podman());
        let podman = podman.into_iter().flat_map(|podman| {
            [
                ("ORPHAND_SITUATION_PODMAN", podman.client().join(" ")),
                ("ORPHAND_SITUATION_IMAGE", IMAGE.to_owned()),
                ("ORPHAND_SITUATION_GROUP", podman.usual_group()),
            ]
        });
        redis.into_iter().chain(docker).chain(podman).collect()
    }
}

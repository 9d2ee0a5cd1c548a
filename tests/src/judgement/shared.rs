//! What all situations share: the registry of sessions, and Docker. Each is started if a situation needs it.

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
}

impl Shared {
    /// Starts what one of these needs. Fails if that cannot run here.
    pub fn start(s: &Scene, scripts: &[Script]) -> Result<Self> {
        let needed = |needs: fn(&Stated) -> bool| scripts.iter().any(|script| needs(&script.stated));
        let redis = needed(Stated::needs_redis).then(|| Redis::start(s)).transpose()?;
        let docker = needed(Stated::needs_docker).then(|| Engine::start(s, Kind::Docker)).transpose()?;
        Ok(Self { redis, docker })
    }

    /// What the daemon is told of them.
    pub fn config(&self) -> String {
        let sessions = self.redis.as_ref().map(|redis| {
            let place = format!("redis://127.0.0.1:{}/0", redis.port);
            format!("[sessions]\nredis = \"{place}\"\nidle = \"3s\"\ninterval = \"1s\"\n")
        });
        let containers = self.docker.as_ref();
        let containers =
            containers.map(|docker| format!("[containers]\ndocker = \"{}\"\n", docker.socket().display()));
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
        redis.into_iter().chain(docker).collect()
    }
}

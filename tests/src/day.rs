//! Many restarts of a service that leaves its servers behind. What the daemon says is compared with what the
//! processes report themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    daemon::Daemon,
    host::{Identity, within},
    scene::Scene,
    service::Service,
    systemd::Manager,
    truth::Told,
};

/// A service of a manager, and its restarts so far.
pub struct Day<'s> {
    scene: &'s Scene,
    /// The manager of the unit.
    pub manager: Manager,
    pub service: Service,
    agents: Vec<Told>,
}

/// Servers by the number of their run; `None` if it is not known.
pub type ByRun = BTreeMap<Option<u64>, BTreeSet<Identity>>;

impl<'s> Day<'s> {
    /// The state before the first start of `service`.
    pub fn begin(scene: &'s Scene, manager: Manager, service: Service) -> Result<Self> {
        service.install(scene, &manager)?;
        Ok(Self { scene, manager, service, agents: Vec::new() })
    }

    /// Restarts it until it has been started `count` times in total. A daemon that watches must have reported
    /// each agent before it is ended, because the unit of a process that ended earlier cannot be found out.
    pub fn restart_until(&mut self, count: usize, watched_by: Option<&Daemon>) -> Result<()> {
        while self.agents.len() < count {
            self.restart()?;
            if let (Some(daemon), Some(agent)) = (watched_by, self.agents.last()) {
                let what = format!("start {} told", self.agents.len());
                daemon.wait(&what, |e| e.is_agent("agent_started", agent.id))?;
            }
        }
        Ok(())
    }

    /// Starts or restarts it once.
    pub fn restart(&mut self) -> Result<()> {
        self.agents.push(self.service.restart(self.scene, &self.manager)?);
        Ok(())
    }

    /// The servers of the start `number`, from 1.
    pub fn servers(&self, number: usize) -> Result<Vec<Told>> {
        let agent = self.agents.get(number.wrapping_sub(1)).context("no such start")?;
        Ok(self.scene.truth().servers(&agent.invocation))
    }

    /// The servers of all starts.
    pub fn by_run(&self) -> Result<ByRun> {
        let runs = (1..=self.agents.len()).map(|number| {
            let servers = self.servers(number)?;
            Ok((Some(u64::try_from(number)?), servers.iter().map(|t| t.id).collect()))
        });
        runs.collect()
    }

    /// The servers of all starts but the present one.
    pub fn left(&self) -> Result<BTreeSet<Identity>> {
        let mut runs = self.by_run()?;
        runs.pop_last();
        Ok(runs.into_values().flatten().collect())
    }

    /// The servers of the present start.
    pub fn present(&self) -> Result<Vec<Identity>> {
        Ok(self.servers(self.agents.len())?.iter().map(|t| t.id).collect())
    }

    /// Checks that all servers of earlier starts were ended, and none of the present start.
    pub fn only_the_present_live(&self) -> Result<()> {
        let left = self.left()?;
        let alive = || left.iter().filter(|one| one.alive()).count();
        within("nobody lives that was left behind", || (alive() == 0).then_some(()))
            .with_context(|| format!("{} of {} still live", alive(), left.len()))?;
        let dead: Vec<_> = self.present()?.into_iter().filter(|one| !one.alive()).collect();
        ensure!(dead.is_empty(), "of the present servers these were ended: {dead:?}");
        Ok(())
    }
}

/// The servers for which the daemons reported `kind`. It is an error if one occurs twice.
pub fn told(daemons: &[&Daemon], kind: &str) -> Result<ByRun> {
    let mut found = ByRun::new();
    let mut seen = BTreeSet::new();
    for event in daemons.iter().flat_map(|d| d.events()).filter(|e| e.kind() == kind) {
        let id = identity(event.server()).with_context(|| event.line.clone())?;
        ensure!(seen.insert(id), "{kind} twice: {}", event.line);
        found.entry(event.generation()).or_default().insert(id);
    }
    Ok(found)
}

/// The servers in an answer to `status`, with their resident memory.
pub fn in_status(status: &Value) -> Result<BTreeMap<Option<u64>, BTreeMap<Identity, u64>>> {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let report = status.get("report").context("no report in the status")?;
    let owned = list(report, "agents").into_iter().flat_map(|agent| list(&agent, "servers"));
    let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for one in owned.chain(list(report, "unowned")) {
        let server = one.get("server").context("no server")?;
        let id = identity(server.get("id").and_then(Value::as_str).unwrap_or_default())?;
        let generation = server.pointer("/run/generation").and_then(Value::as_u64);
        let rss = server.get("rss_bytes").and_then(Value::as_u64).context("memory was not measured")?;
        ensure!(found.entry(generation).or_default().insert(id, rss).is_none(), "{id} is in it twice");
    }
    Ok(found)
}

/// The process that a server's id, `PID@START`, names.
pub fn identity(id: &str) -> Result<Identity> {
    let (pid, start) = id.split_once('@').with_context(|| format!("no id: {id:?}"))?;
    Ok(Identity { pid: pid.parse()?, start: start.parse()? })
}

/// The resident memory of a process in bytes, from /proc/PID/statm.
pub fn rss(one: Identity) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{}/statm", one.pid)).with_context(|| one.to_string())?;
    let pages: u64 = text.split(' ').nth(1).context("statm(5)")?.parse()?;
    Ok(pages * u64::try_from(rustix::param::page_size())?)
}

/// Repeatable random numbers: the seed is printed, and `ORPHAND_TEST_SEED` sets it.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator with a seed of its own.
    pub fn new() -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("before 1970")?;
        let seed = match env::var("ORPHAND_TEST_SEED") {
            Ok(seed) => seed.parse().context("ORPHAND_TEST_SEED is no number")?,
            Err(_) => u64::from(now.subsec_nanos()) | 1,
        };
        eprintln!("orphand tests: ORPHAND_TEST_SEED={seed} plays the same again");
        Ok(Self(seed))
    }

    /// A random duration below `limit` (xorshift64).
    pub fn below(&mut self, limit: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        limit.mul_f64(f64::from(u16::try_from(self.0 >> 48).unwrap_or_default()) / 65536.0)
    }
}

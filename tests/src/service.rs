//! A service with an agent: the unit, and what the agent starts.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::{host::within, scene::Scene, systemd::Manager, truth::Told};

/// The name by which a rule recognises an MCP server.
pub const SERVER: &str = "notes-mcp-server";

/// A unit, its agent, and the agent's children.
#[derive(Clone, Debug)]
pub struct Service {
    /// The unit's name.
    pub unit: String,
    /// The name of the agent's program: `claude` is recognised by a rule, `gateway` is not.
    pub program: String,
    /// The name of the play that the agent plays.
    pub play: String,
    /// Further lines for the unit's section `[Service]`.
    pub lines: Vec<String>,
    /// What the agent starts.
    pub children: Vec<Child>,
}

/// A child of an agent.
#[derive(Clone, Debug)]
pub struct Child {
    program: String,
    order: Map<String, Value>,
}

impl Child {
    /// The program `program`, known as `alias`, on two pipes.
    pub fn new(program: &str, alias: impl Into<String>) -> Self {
        let order = [("program", json!(program)), ("as", json!(alias.into())), ("args", json!([]))];
        Self { program: program.into(), order: order.map(|(k, v)| (k.to_owned(), v)).into_iter().collect() }
    }

    /// Its stdin and stdout: `pipe`, `socket` or `null`.
    pub fn wire(self, kind: &str) -> Self {
        self.set("wire", json!(kind))
    }

    /// With this word before all other arguments.
    pub fn verb(self, word: &str) -> Self {
        self.set("verb", json!([word]))
    }

    /// In a session of its own.
    pub fn setsid(self) -> Self {
        self.set("setsid", json!(true))
    }

    /// Created by a child that exits at once.
    pub fn double_fork(self) -> Self {
        self.set("double_fork", json!(true))
    }

    /// With this many KiB of memory of its own.
    pub fn kib(self, kib: u32) -> Self {
        self.set("args", json!(["--kib", kib.to_string()]))
    }

    /// In a scope of its own, outside of the unit.
    pub fn scope(self, manager: &Manager) -> Self {
        let options = if manager.user().is_some() { json!(["--user"]) } else { json!(["--system"]) };
        self.set("scope", options)
    }

    fn set(mut self, key: &str, value: Value) -> Self {
        self.order.insert(key.into(), value);
        self
    }
}

impl Service {
    /// A service `NAME.service` with this `KillMode`, whose agent starts `children`.
    pub fn new(name: &str, kill_mode: &str, children: Vec<Child>) -> Self {
        Self {
            unit: format!("{name}.service"),
            program: "claude".into(),
            play: name.trim_end_matches('@').into(),
            lines: vec![format!("KillMode={kill_mode}")],
            children,
        }
    }

    /// A service like untether's: 14 MCP servers, some in sessions of their own, some double-forked, on pipes
    /// and socket pairs, of different sizes. The unit stops the agent only.
    pub fn untether(name: &str) -> Self {
        let children = (0..14).map(|i| {
            let child = Child::new(SERVER, format!("server{i}")).kib(16 * (i + 1));
            let child = if i % 2 == 1 { child.wire("socket") } else { child };
            let child = if i % 3 == 0 { child.setsid() } else { child };
            if i % 5 == 4 { child.double_fork() } else { child }
        });
        Self::new(name, "process", children.collect())
    }

    /// With an agent of this name.
    pub fn run_by(mut self, program: &str) -> Self {
        self.program = program.into();
        self
    }

    /// With one more line in `[Service]`.
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Adds the unit to a manager; nothing is started yet.
    pub fn install(&self, scene: &Scene, manager: &Manager) -> Result<()> {
        let agent = scene.program(&self.program, true)?;
        let play = self.write_play(scene)?;
        let lines = self.lines.join("\n");
        let text = format!(
            "[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=notify\nExecStart={agent} --play {play}\nTimeoutStopSec=5\n{lines}\n"
        );
        manager.add(&self.unit, &text)
    }

    /// As a child of another agent: this service's play runs below it.
    pub fn nested(&self, scene: &Scene) -> Result<Child> {
        scene.program(&self.program, true)?;
        let play = self.write_play(scene)?;
        Ok(Child::new(&self.program, format!("{}-agent", self.play)).set("args", json!(["--play", play])))
    }

    fn write_play(&self, scene: &Scene) -> Result<String> {
        for child in &self.children {
            // The play of a nested agent already exists.
            scene.program(&child.program, false)?;
        }
        let children: Vec<&Map<String, Value>> = self.children.iter().map(|c| &c.order).collect();
        let path = scene.folder().join(format!("{}.json", self.play));
        let play = json!({ "play": self.play, "children": children });
        std::fs::write(&path, play.to_string()).with_context(|| format!("write {}", path.display()))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Starts or restarts it and waits until all its processes have reported. Returns the agent.
    pub fn restart(&self, scene: &Scene, manager: &Manager) -> Result<Told> {
        manager.systemctl(&["restart", &self.unit])?;
        self.present(scene, manager)
    }

    /// Kills its agent, which the manager restarts (`Restart=always`), and waits until all processes have
    /// reported. Returns the agent.
    pub fn crash(&self, scene: &Scene, manager: &Manager) -> Result<Told> {
        let before = scene.truth().agents(&self.play).len();
        manager.systemctl(&["kill", "--signal=KILL", "--kill-who=main", &self.unit])?;
        scene.truth().wait(&self.play, before + 1)?;
        within(&format!("{} is up again", self.unit), || {
            (manager.property(&self.unit, "ActiveState").ok()? == "active").then_some(())
        })?;
        self.present(scene, manager)
    }

    /// The agent of the present start.
    pub fn present(&self, scene: &Scene, manager: &Manager) -> Result<Told> {
        let invocation = manager.invocation(&self.unit)?;
        let told = scene.truth().agents(&self.play).into_iter().rfind(|t| t.invocation == invocation);
        let told = told.with_context(|| format!("nobody of {} told of {invocation:?}", self.unit))?;
        ensure!(told.id.alive(), "{} is dead", told.id);
        Ok(told)
    }
}

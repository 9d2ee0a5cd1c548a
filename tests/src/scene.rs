//! A scene: the frame of one test.

use std::{
    cell::{Cell, RefCell},
    fs::{self, File},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::{
    cast::{Actor, Cast},
    cgroup::Cgroup,
    daemon::{Daemon, Launch, built},
    event::Event,
    host::Identity,
    part::Part,
};

/// The folder, the cgroup, the cast and the daemons of a test. Dropping it ends all of them.
pub struct Scene {
    // Fields drop in this order: daemons stop judging before their subjects are ended, the host is given
    // back last.
    daemons: RefCell<Vec<Rc<Daemon>>>,
    cgroup: Cgroup,
    children: RefCell<Vec<Child>>,
    cast: Arc<Cast>,
    folder: TempDir,
    barriers: Cell<u32>,
    _host: File,
}

/// Play a test with the host to itself; afterwards check all that holds for every test.
pub fn scene(play: impl FnOnce(&Scene) -> Result<()>) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "this test needs root: run `cargo xtask test` as root");
    let scene = Scene::open()?;
    let outcome = play(&scene).and_then(|()| scene.close());
    if outcome.is_err() {
        for one in scene.members() {
            eprintln!("orphand tests: still there: {one} {:?}", one.argv());
        }
        let kept = scene.folder.path().with_extension("failed");
        if fs::rename(scene.folder.path(), &kept).is_ok() {
            eprintln!("orphand tests: traces and logs are kept in {}", kept.display());
        }
    }
    outcome
}

impl Scene {
    fn open() -> Result<Self> {
        let lock = std::env::temp_dir().join("orphand-tests.lock");
        let host = File::create(&lock).with_context(|| format!("make {}", lock.display()))?;
        flock(&host, FlockOperation::LockExclusive).with_context(|| format!("lock {}", lock.display()))?;
        let folder = tempfile::Builder::new().prefix("orphand-scene-").tempdir().context("make a folder")?;
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).context("open the folder to other users")?;
        Ok(Self {
            daemons: RefCell::default(),
            cgroup: Cgroup::create()?,
            children: RefCell::default(),
            cast: Cast::assemble(folder.path())?,
            folder,
            barriers: Cell::new(0),
            _host: host,
        })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A daemon that is ready.
    pub fn daemon(&self) -> Result<Rc<Daemon>> {
        self.daemon_with(&Launch::default())
    }

    /// A daemon of another kind that is ready.
    pub fn daemon_with(&self, launch: &Launch) -> Result<Rc<Daemon>> {
        let folder = self.folder().join(format!("daemon{}", self.daemons.borrow().len()));
        let daemon = Rc::new(Daemon::start(&folder, launch)?);
        self.daemons.borrow_mut().push(Rc::clone(&daemon));
        Ok(daemon)
    }

    /// A part started by nobody in the play: its parent is the test.
    pub fn start(&self, part: &Part) -> Result<Actor> {
        let argv = part.argv(&self.cast.script(&part.script)?);
        let mut argv = argv.iter();
        let mut command = self.command(argv.next().context("an empty command line")?)?;
        let log = File::options().append(true).create(true).open(self.folder().join("actors.log"))?;
        command.args(argv).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.spawn(&mut command)?;
        self.cast.expect(&part.alias)
    }

    /// A command that will run inside the scene's cgroup.
    pub fn command(&self, program: &str) -> Result<Command> {
        let mut command = Command::new(built("enter")?);
        command.arg(self.cgroup.procs()).arg(program);
        Ok(command)
    }

    /// Run it as a child of the test that ends with the scene.
    pub fn spawn(&self, command: &mut Command) -> Result<Identity> {
        let child = command.spawn().with_context(|| format!("start {command:?}"))?;
        let id = Identity::of(child.id()).context("the child has no identity");
        self.children.borrow_mut().push(child);
        id
    }

    /// The same with pipes for its stdin and stdout.
    pub(crate) fn spawn_piped(&self, command: &mut Command) -> Result<(Identity, ChildStdin, ChildStdout)> {
        let id = self.spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let mut children = self.children.borrow_mut();
        let child = children.last_mut().context("no child")?;
        Ok((id, child.stdin.take().context("no stdin")?, child.stdout.take().context("no stdout")?))
    }

    /// The actor called `alias`, whoever started it, when it is there.
    pub fn actor(&self, alias: &str) -> Result<Actor> {
        self.cast.expect(alias)
    }

    /// Whoever lives in the scene now.
    pub fn members(&self) -> Vec<Identity> {
        self.cgroup.members()
    }

    /// After this the daemon has processed every record of what happened before: a marker agent started now
    /// has ended, and records are told in their order.
    pub fn mark(&self, daemon: &Daemon) -> Result<Event> {
        let program = self.folder().join("bin/codex");
        if !program.exists() {
            fs::copy("/bin/true", &program).context("copy /bin/true")?;
        }
        let mut child = Command::new(&program).stdin(Stdio::null()).spawn().context("start the marker")?;
        let id = Identity::of(child.id()).context("the marker has no identity")?;
        child.wait()?;
        daemon.wait(&format!("end of the marker {id}"), |e| e.is_agent("agent_exited", id))
    }

    /// After this the daemon has also given the verdicts on all that was suspect before: a decoy orphaned now
    /// was judged, and every grace is as long as every other.
    pub fn barrier(&self, daemon: &Daemon) -> Result<()> {
        let n = self.barriers.get();
        self.barriers.set(n + 1);
        let agent = self.start(&Part::new("gemini", format!("decoy-agent-{n}")))?;
        let server = agent.start(&Part::new("mcp-server-decoy", format!("decoy-server-{n}")).wire("pipe"))?;
        agent.kill()?;
        daemon.wait_for("orphan_detected", server.id)?;
        if daemon.events().iter().any(|e| e.kind() == "ready" && e["mode"] == "observe") {
            return server.kill();
        }
        daemon.wait_for("orphan_reaped", server.id).map(drop)
    }

    fn close(&self) -> Result<()> {
        for daemon in self.daemons.borrow().iter() {
            daemon.finish()?;
        }
        Ok(())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.daemons.borrow_mut().clear();
        // Those that are children of the test are collected here, once they have been ended.
        for one in self.cgroup.members() {
            let _ = one.signal(rustix::process::Signal::KILL);
        }
        for child in self.children.borrow_mut().iter_mut() {
            let _ = child.wait();
        }
    }
}

//! A scene: the frame of one test.

use std::{
    cell::{Cell, RefCell},
    fs::{self, File},
    os::{fd::BorrowedFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use rustix::{
    fs::{FlockOperation, flock},
    io::{FdFlags, fcntl_setfd},
    mount::{UnmountFlags, unmount},
};
use tempfile::TempDir;

use crate::{
    binary::built,
    cast::{Actor, Cast},
    cgroup::Cgroup,
    daemon::{Daemon, Launch},
    event::Event,
    host::Identity,
    part::Part,
    systemd::{Layout, System},
    truth::Truth,
};

const GATEWAY: &str = include_str!("../actors/gateway.py");

const PREFIX: &str = "orphand-scene-";

/// The folder, the cgroup, the actors and the daemons of a test. Dropping it ends all of them.
pub struct Scene {
    // Fields are dropped in this order: daemons stop judging before their subjects are ended, and the lock on
    // the host is released last.
    daemons: RefCell<Vec<Rc<Daemon>>>,
    cgroup: Cgroup,
    children: RefCell<Vec<Child>>,
    cast: Arc<Cast>,
    truth: Arc<Truth>,
    keeper: Child,
    folder: TempDir,
    barriers: Cell<u32>,
    _host: File,
}

/// Plays a test beside others; afterwards checks what must hold for every test.
pub fn scene(play: impl FnOnce(&Scene) -> Result<()>) -> Result<()> {
    perform(FlockOperation::LockShared, play)
}

/// Plays a test with the host for itself, because it storms the host, or changes what the host has once.
pub fn scene_alone(play: impl FnOnce(&Scene) -> Result<()>) -> Result<()> {
    perform(FlockOperation::LockExclusive, play)
}

fn perform(lock: FlockOperation, play: impl FnOnce(&Scene) -> Result<()>) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "this test needs root: run `cargo xtask test` as root");
    let scene = Scene::open(lock)?;
    let outcome = play(&scene).and_then(|()| scene.close());
    if outcome.is_err() {
        for one in scene.members() {
            eprintln!("orphand tests: still there: {one} {:?}", one.argv());
        }
        unmount_below(scene.folder());
        let kept = scene.folder.path().with_extension("failed");
        if fs::rename(scene.folder.path(), &kept).is_ok() {
            eprintln!("orphand tests: traces and logs are kept in {}", kept.display());
        }
    }
    outcome
}

/// No process of a scene inherits what this process inherited beyond standard streams: the pipe of whoever started the
/// tests would reach every server of the scene.
#[expect(unsafe_code, reason = "rustix marks borrowed descriptors, and these belong to nobody here")]
fn keep_what_was_inherited() -> Result<()> {
    for entry in fs::read_dir("/proc/self/fd").context("list the open files of this test")? {
        let number: i32 = entry?.file_name().to_string_lossy().parse().context("a descriptor")?;
        if number > 2 {
            // SAFETY: nothing of this test closes what it did not open; the one of the listing is only marked.
            let open = unsafe { BorrowedFd::borrow_raw(number) };
            let _ = fcntl_setfd(open, FdFlags::CLOEXEC);
        }
    }
    Ok(())
}

impl Scene {
    fn open(lock: FlockOperation) -> Result<Self> {
        keep_what_was_inherited()?;
        let path = std::env::temp_dir().join("orphand-tests.lock");
        let host = File::create(&path).with_context(|| format!("make {}", path.display()))?;
        // Whoever finds nobody clears away what killed tests have left.
        if flock(&host, FlockOperation::NonBlockingLockExclusive).is_ok() {
            Cgroup::sweep()?;
            sweep(&std::env::temp_dir());
        }
        flock(&host, lock).with_context(|| format!("lock {}", path.display()))?;
        let cgroup = Cgroup::create()?;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().context("make a folder")?;
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).context("open the folder to other users")?;
        Ok(Self {
            daemons: RefCell::default(),
            children: RefCell::default(),
            cast: Cast::assemble(folder.path())?,
            truth: Truth::listen(folder.path())?,
            keeper: keeper(&cgroup)?,
            cgroup,
            folder,
            barriers: Cell::new(0),
            _host: host,
        })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The name of its cgroup, for `--below`: what is not below it is neither judged nor signalled.
    pub fn below(&self) -> &str {
        self.cgroup.name()
    }

    /// Starts a daemon and waits until it is ready.
    pub fn daemon(&self) -> Result<Rc<Daemon>> {
        self.daemon_with(&Launch::default())
    }

    /// Starts a daemon with options and waits until it is ready.
    pub fn daemon_with(&self, launch: &Launch) -> Result<Rc<Daemon>> {
        let folder = self.folder().join(format!("daemon{}", self.daemons.borrow().len()));
        let launch = Launch { below: Some(self.below().to_owned()), ..launch.clone() };
        let daemon = Rc::new(Daemon::start(&folder, &launch)?);
        self.daemons.borrow_mut().push(Rc::clone(&daemon));
        Ok(daemon)
    }

    /// Starts a part as a child of the test.
    pub fn start(&self, part: &Part) -> Result<Actor> {
        let argv = part.argv(&self.cast.script(&part.script)?);
        let mut argv = argv.iter();
        let mut command = self.command(argv.next().context("an empty command line")?)?;
        let log = File::options().append(true).create(true).open(self.folder().join("actors.log"))?;
        command.args(argv).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.spawn(&mut command)?;
        self.cast.expect(&part.alias)
    }

    /// Boots this machine's systemd under the name `name`; it ends with the scene.
    pub fn boot(&self, name: &str, layout: Layout) -> Result<System> {
        System::boot(self, name, layout)
    }

    /// What the processes of services report about themselves.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Creates a program of services in the scene's `bin` under `name`: an agent, or a program that an agent
    /// starts.
    pub fn program(&self, name: &str, agent: bool) -> Result<String> {
        if agent {
            return self.cast.put(name, GATEWAY);
        }
        let path = self.folder().join("bin").join(name);
        if !path.exists() {
            fs::copy(built("serve")?, &path).with_context(|| format!("copy it to {}", path.display()))?;
        }
        Ok(path.to_string_lossy().into_owned())
    }

    /// A command that runs inside the scene's cgroup.
    pub fn command(&self, program: &str) -> Result<Command> {
        let [enter, procs] = self.enter()?;
        let mut command = Command::new(enter);
        command.arg(procs).arg(program);
        Ok(command)
    }

    /// The first words of a command line that runs a program inside the scene's cgroup.
    pub(crate) fn enter(&self) -> Result<[PathBuf; 2]> {
        Ok([built("enter")?, self.cgroup.procs()])
    }

    /// The first words of a command line that runs a program in a cgroup of this name below the scene's.
    pub fn enter_room(&self, name: &str) -> Result<[PathBuf; 2]> {
        let (_, procs) = self.cgroup.room(name, false)?;
        Ok([built("enter")?, procs.into_iter().next().context("no group")?])
    }

    /// A program that goes by the name of a terminal multiplexer and sleeps.
    pub fn multiplexer(&self) -> Result<String> {
        let path = self.folder().join("bin/tmux");
        if !path.exists() {
            fs::copy("/bin/sleep", &path).context("copy /bin/sleep")?;
        }
        Ok(path.to_string_lossy().into_owned())
    }

    /// A command that runs in a cgroup of its own below the scene's, and the path of that cgroup as in
    /// /proc/PID/cgroup. `version1`: also in the hierarchy of systemd.
    pub(crate) fn command_in(&self, room: &str, version1: bool, program: &str) -> Result<(String, Command)> {
        let (path, procs) = self.cgroup.room(room, version1)?;
        let mut command = self.command(&built("enter")?.to_string_lossy())?;
        let (last, others) = procs.split_last().context("no group")?;
        for one in others {
            command.arg(one).arg(built("enter")?);
        }
        command.arg(last).arg(program);
        // What is typed at the terminal is for the test.
        command.process_group(0);
        Ok((path, command))
    }

    /// As `command_in`, for a service manager without a cgroup namespace of its own: in all hierarchies that
    /// systemd uses here. It ends with the scene in any case.
    pub(crate) fn command_for_manager(&self, room: &str, program: &str) -> Result<Command> {
        self.command_in(room, self.cgroup.has_version1(), program).map(|(_, command)| command)
    }

    /// Runs it as a child of the test that ends with the scene.
    pub fn spawn(&self, command: &mut Command) -> Result<Identity> {
        let child = command.spawn().with_context(|| format!("start {command:?}"))?;
        let id = Identity::of(child.id()).context("the child has no identity");
        self.children.borrow_mut().push(child);
        id
    }

    /// The same with pipes for standard input and output.
    pub(crate) fn spawn_piped(&self, command: &mut Command) -> Result<(Identity, ChildStdin, ChildStdout)> {
        let id = self.spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let mut children = self.children.borrow_mut();
        let child = children.last_mut().context("no child")?;
        Ok((id, child.stdin.take().context("no stdin")?, child.stdout.take().context("no stdout")?))
    }

    /// Waits for the actor `alias`, whoever started it.
    pub fn actor(&self, alias: &str) -> Result<Actor> {
        self.cast.expect(alias)
    }

    /// The processes in the scene now.
    pub fn members(&self) -> Vec<Identity> {
        self.cgroup.members()
    }

    /// Waits until the daemon has processed everything that happened before: it starts a marker agent now and
    /// waits for the event of its end; events are in order.
    pub fn mark(&self, daemon: &Daemon) -> Result<Event> {
        let program = self.folder().join("bin/codex");
        if !program.exists() {
            fs::copy("/bin/cat", &program).context("copy /bin/cat")?;
        }
        let mut command = self.command(&program.to_string_lossy())?;
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().context("start the marker")?;
        let id = Identity::of(child.id()).context("the marker has no identity")?;
        // Its cgroup is read while it lives.
        daemon.wait(&format!("start of the marker {id}"), |e| e.is_agent("agent_started", id))?;
        drop(child.stdin.take());
        child.wait()?;
        daemon.wait(&format!("end of the marker {id}"), |e| e.is_agent("agent_exited", id))
    }

    /// Waits until the daemon has also judged everything that was suspect before: it orphans a decoy now and
    /// waits for its verdict; all grace periods are equal.
    pub fn barrier(&self, daemon: &Daemon) -> Result<()> {
        let decoy = self.decoy()?;
        daemon.wait_for("orphan_detected", decoy.id)?;
        if daemon.events().iter().any(|e| e.kind() == "ready" && e["mode"] == "observe") {
            return decoy.kill();
        }
        daemon.wait_for("orphan_reaped", decoy.id).map(drop)
    }

    /// A server whose agent has just been killed.
    pub fn decoy(&self) -> Result<Actor> {
        let n = self.barriers.get();
        self.barriers.set(n + 1);
        let agent = self.start(&Part::new("gemini", format!("decoy-agent-{n}")))?;
        let server = agent.start(&Part::new("mcp-server-decoy", format!("decoy-server-{n}")).wire("pipe"))?;
        agent.kill()?;
        Ok(server)
    }

    fn close(&self) -> Result<()> {
        for daemon in self.daemons.borrow().iter() {
            daemon.finish()?;
        }
        Ok(())
    }
}

/// Starts a process that ends the scene's cgroup if the test is killed: it reads from a pipe whose other end only the
/// test has.
fn keeper(cgroup: &Cgroup) -> Result<Child> {
    let mut keeper = Command::new("/bin/sh");
    keeper.args(["-c", "read -r _; echo 1 > \"$0\""]).arg(cgroup.killer());
    keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    keeper.spawn().context("start the keeper")
}

/// Removes the folders of scenes whose test was killed, which have no processes any more. Folders that were
/// kept after a failure stay.
fn sweep(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.path().extension().is_none() {
            unmount_below(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.daemons.borrow_mut().clear();
        // Children of the test are waited for here, after they have been ended.
        if let Err(error) = self.cgroup.end() {
            eprintln!("orphand tests: {error:#}");
        }
        for child in self.children.borrow_mut().iter_mut().chain([&mut self.keeper]) {
            let _ = child.wait();
        }
        unmount_below(self.folder());
    }
}

/// Unmounts what a container engine has mounted below this folder. It leaves that mount when it is killed.
fn unmount_below(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for point in points.filter(|point| Path::new(point).starts_with(folder)).collect::<Vec<_>>().iter().rev()
    {
        if let Err(error) = unmount(*point, UnmountFlags::DETACH) {
            eprintln!("orphand tests: cannot unmount {point}: {error}");
        }
    }
}

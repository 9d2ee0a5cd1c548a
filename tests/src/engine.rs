//! Container engines of a test's own: the real Docker and podman, with all their state in the scene's folder.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::unix::{
        fs::{chown, symlink},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    cast::Actor,
    host::{Identity, output, within},
    scene::Scene,
};

/// The image that every engine has. Its name is that of an MCP server.
pub const IMAGE: &str = "mcp/box";

/// A server in that image that ignores the end of its input.
pub const DEAF: [&str; 1] = ["/bin/mcp-server-deaf"];

/// Further programs of that image: a server that answers each line of its input, and one that brings results from its
/// first line on. Both go on at the end of their input, and end when they are told to.
const PROGRAMS: [(&str, &str); 2] = [
    (
        "bin/mcp-server-box",
        "#!/bin/sh\ntrap 'exit 0' TERM\nwhile read -r _; do echo '{\"result\":{}}'; done\nwhile :; do sleep 1000 & wait; done\n",
    ),
    (
        "bin/mcp-server-results",
        "#!/bin/sh\ntrap 'exit 0' TERM\nread -r _\nwhile :; do echo '{\"result\":{}}'; sleep 0.2; done\n",
    ),
];

/// The first message of a host.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"home","version":"1"}}}"#;

/// Limits that can be set where a limit cannot be raised.
const LIMITS: [&str; 4] = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"];

/// Which program the engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Docker, with a daemon of the scene.
    Docker,
    Podman,
}

/// An engine. Its containers end with it.
#[derive(Debug)]
pub struct Engine {
    kind: Kind,
    folder: PathBuf,
    /// The user whose podman it is, if not root's: it has no daemon, no rights and no control groups.
    user: Option<u32>,
    /// The control group of its containers. The next scene ends what a killed test has left in it.
    group: String,
    /// The command line that runs a program in the scene.
    enter: [PathBuf; 2],
}

impl Engine {
    /// Starts one. Fails if it cannot run here.
    pub fn start(scene: &Scene, kind: Kind) -> Result<Self> {
        Self::start_apart(scene, kind, kind.name())
    }

    /// Starts one beside others of its kind, with its state in a folder of this name.
    pub fn start_apart(scene: &Scene, kind: Kind, folder: &str) -> Result<Self> {
        let engine = Self::prepare(scene, kind, folder, None)?;
        if kind == Kind::Docker {
            engine.start_dockerd(scene)?;
        }
        engine.import()?;
        Ok(engine)
    }

    /// A podman of this user. It keeps a process of its own from its first call on, which ends with the engine.
    pub fn start_of_user(scene: &Scene, user: u32) -> Result<Self> {
        let engine = Self::prepare(scene, Kind::Podman, "rootless", Some(user))?;
        chown(&engine.folder, Some(user), Some(user))?;
        engine.import()?;
        Ok(engine)
    }

    fn prepare(scene: &Scene, kind: Kind, folder: &str, user: Option<u32>) -> Result<Self> {
        let folder = scene.folder().join(folder);
        fs::create_dir(&folder)?;
        let group = format!("/{}-boxes", scene.below());
        let enter = scene.enter()?;
        Ok(Self { kind, folder, user, group, enter })
    }

    fn start_dockerd(&self, scene: &Scene) -> Result<()> {
        let log = self.folder.join("log");
        let file = fs::File::create(&log)?;
        let mut command = scene.command("/usr/sbin/dockerd")?;
        for (option, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(option).arg(self.folder.join(name));
        }
        command.arg("--host").arg(self.host()).args(["--cgroup-parent", &self.group]);
        // The same engine by another name, for clients of an engine that nobody else is told of.
        command.arg("--host").arg(format!("unix://{}", self.folder.join("other.sock").display()));
        command.args(["--iptables=false", "--bridge=none", "--storage-driver=vfs"]);
        command.args(["--exec-opt", "native.cgroupdriver=cgroupfs"]);
        let daemon = scene.spawn(command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file))?;
        let ready = within("a Docker that answers", || match self.call(&["version"]) {
            Err(_) if daemon.alive() => None,
            Err(error) => Some(Err(error)),
            Ok(_) => Some(Ok(())),
        });
        let last =
            || fs::read_to_string(&log).unwrap_or_default().lines().last().unwrap_or_default().to_owned();
        ready.and_then(|ready| ready).with_context(|| format!("dockerd cannot run here: {}", last()))
    }

    /// Lets podman serve its interface at the socket.
    pub fn serve(&self, scene: &Scene) -> Result<()> {
        let client = self.client();
        let (program, first) = client.split_first().context("no client")?;
        let file = fs::File::create(self.folder.join("log"))?;
        let mut command = scene.command(program)?;
        command.args(first).args(["system", "service", "--time", "0"]).arg(self.host());
        let service = scene.spawn(command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file))?;
        within("a podman that serves", || {
            let ended = || (!service.alive()).then(|| Err(anyhow!("podman cannot serve here")));
            if self.socket().exists() { Some(Ok(())) } else { ended() }
        })?
    }

    /// Its folder: `engine.sock` and `other.sock` are Docker's sockets.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket of the engine's interface.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("engine.sock")
    }

    fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Makes the image from Debian's static busybox.
    fn import(&self) -> Result<()> {
        let root = self.folder.join("image");
        let bin = root.join("bin");
        fs::create_dir_all(&bin)?;
        fs::copy("/bin/busybox", bin.join("busybox")).context("copy /bin/busybox")?;
        for name in ["sh", "sleep", "cat"] {
            symlink("busybox", bin.join(name))?;
        }
        let [deaf] = DEAF;
        put(&root.join(deaf.trim_start_matches('/')), "#!/bin/sh\nwhile :; do sleep 1000; done\n")?;
        for (path, text) in PROGRAMS {
            put(&root.join(path), text)?;
        }
        let archive = self.folder.join("image.tar");
        let tar = output(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg("."))?;
        ensure!(tar.status.success(), "tar: {}", String::from_utf8_lossy(&tar.stderr));
        let archive = archive.to_string_lossy();
        self.call(&["import", &archive, IMAGE])
            .map(drop)
            .with_context(|| format!("{} cannot run here", self.kind.name()))
    }

    /// The program and the arguments that come before the verb.
    pub fn client(&self) -> Vec<String> {
        let path = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        match self.kind {
            Kind::Docker => vec!["/usr/bin/docker".to_owned()],
            // All else is in its home. Only there it finds the process that keeps its user namespace.
            Kind::Podman if self.user.is_some() => {
                ["/usr/bin/podman", "--storage-driver", "vfs"].map(str::to_owned).to_vec()
            }
            Kind::Podman => [
                ["/usr/bin/podman", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
                    .map(str::to_owned)
                    .to_vec(),
                vec!["--root".to_owned(), path("root"), "--runroot".to_owned(), path("run")],
                vec!["--tmpdir".to_owned(), path("tmp")],
            ]
            .concat(),
        }
    }

    /// What a podman without root finds its files by.
    fn home(&self) -> Vec<(&'static str, PathBuf)> {
        let names: &[_] = if self.user.is_some() { &["HOME", "XDG_RUNTIME_DIR"] } else { &[] };
        names.iter().map(|name| (*name, self.folder.clone())).collect()
    }

    /// Calls the client and returns what it printed.
    pub fn call(&self, arguments: &[&str]) -> Result<String> {
        let client = self.client();
        let (program, first) = client.split_first().context("no client")?;
        let [enter, procs] = &self.enter;
        let mut command = Command::new(enter);
        command.arg(procs);
        if let Some(user) = self.user {
            as_user(&mut command, user);
        }
        command.arg(program).args(first).args(arguments).env("DOCKER_HOST", self.host()).envs(self.home());
        let done = output(&mut command)?;
        let told = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{} {}: {}", self.kind.name(), arguments.join(" "), told.trim());
        Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    }

    /// Makes an agent start the client over pipes; gives the client's process.
    pub fn client_of(&self, agent: &Actor, arguments: &[&str]) -> Result<Identity> {
        self.client_at(&self.socket(), agent, arguments)
    }

    /// The same, of a client that talks to Docker at this socket.
    pub fn client_at(&self, socket: &Path, agent: &Actor, arguments: &[&str]) -> Result<Identity> {
        let mut argv = self.client();
        argv.extend(arguments.iter().map(ToString::to_string));
        let host = ("DOCKER_HOST", PathBuf::from(format!("unix://{}", socket.display())));
        let env: BTreeMap<_, _> = self.home().into_iter().chain([host]).collect();
        let order = json!({ "do": "start", "wire": "pipe", "argv": argv, "env": env, "directory": "/" });
        let answer = agent.send_order(&order)?;
        let pid = answer.get("pid").and_then(Value::as_u64).context("no pid")?;
        Identity::of(u32::try_from(pid)?).context("the client has ended")
    }

    /// Makes an agent start docker-compose over pipes in a folder with a `docker-compose.yml`, with a first message of the
    /// protocol; its client talks to Docker at this socket. Gives the process of docker-compose.
    pub fn compose_at(
        &self,
        socket: &Path,
        agent: &Actor,
        folder: &Path,
        words: &[&str],
    ) -> Result<Identity> {
        let argv: Vec<&str> = ["/usr/bin/docker-compose"].iter().chain(words).copied().collect();
        // It looks for Docker's client in PATH.
        let env = json!({ "DOCKER_HOST": format!("unix://{}", socket.display()), "PATH": "/usr/bin:/bin" });
        let order = json!({
            "do": "start", "wire": "pipe", "argv": argv, "env": env, "directory": folder.to_string_lossy(),
            "say": format!("{INITIALIZE}\n"),
        });
        let answer = agent.send_order(&order)?;
        let pid = answer.get("pid").and_then(Value::as_u64).context("no pid")?;
        Identity::of(u32::try_from(pid)?).context("docker-compose has ended")
    }

    /// Lets clients and orphand reach the engine through this socket, too: `meet` is called with the first line of the
    /// first request of each connection, before the engine gets it.
    pub fn front(&self, socket: &Path, meet: impl Fn(&str) + Clone + Send + 'static) -> Result<()> {
        let (listener, engine) = (UnixListener::bind(socket)?, self.socket());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (engine, meet) = (engine.clone(), meet.clone());
                thread::spawn(move || pass_on(client, &engine, meet));
            }
        });
        Ok(())
    }

    /// The arguments of `run` with these options for a container that is called `name`, if that is not empty, and
    /// runs `program`.
    pub fn run(&self, options: &[&'static str], name: &str, program: &[&str]) -> Vec<String> {
        let mut words = vec!["run".to_owned(), "--network".to_owned(), "none".to_owned()];
        words.extend(options.iter().map(ToString::to_string));
        if self.kind == Kind::Podman {
            words.extend(LIMITS.map(str::to_owned));
        }
        if self.kind == Kind::Podman && self.user.is_none() {
            words.extend(["--cgroup-parent".to_owned(), self.group.clone()]);
        }
        if !name.is_empty() {
            words.extend(["--name".to_owned(), name.to_owned()]);
        }
        words.push(IMAGE.to_owned());
        words.extend(program.iter().map(ToString::to_string));
        words
    }

    /// A group below that of its containers, with the name that Docker gives to its own.
    pub fn usual_group(&self) -> String {
        format!("{}/docker", self.group)
    }

    /// Waits until the container runs; gives its first process.
    pub fn running(&self, name: &str) -> Result<Identity> {
        within(&format!("a running container {name}"), || {
            let told: Value = serde_json::from_str(&self.call(&["inspect", name]).ok()?).ok()?;
            let state = told.pointer("/0/State")?;
            let pid = state.get("Pid")?.as_u64().filter(|pid| *pid > 0)?;
            (state.get("Running")? == true).then_some(())?;
            Identity::of(u32::try_from(pid).ok()?)
        })
    }

    /// Ends all its containers.
    pub fn end(&self) -> Result<()> {
        let all = self.call(&["ps", "--all", "--quiet"])?;
        let all: Vec<&str> = all.split_whitespace().collect();
        if all.is_empty() {
            return Ok(());
        }
        let force = if self.kind == Kind::Podman {
            vec!["rm", "--force", "--time", "0"]
        } else {
            vec!["rm", "--force"]
        };
        self.call(&[&force[..], &all].concat()).map(drop)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("orphand tests: containers of {}: {error:#}", self.kind.name());
        }
        let keeper = self.folder.join("libpod/tmp/pause.pid");
        if let Some(keeper) =
            fs::read_to_string(keeper).ok().and_then(|pid| Identity::of(pid.trim().parse().ok()?))
        {
            let _ = keeper.signal(Signal::KILL);
        }
        remove_groups(&self.group);
    }
}

impl Kind {
    /// The name of the client.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

/// What follows is run by this user, with its own groups only.
fn as_user(command: &mut Command, user: u32) {
    let user = user.to_string();
    command.args(["/usr/bin/setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"]).current_dir("/");
}

/// Passes a connection on to the engine, after `meet` with the first line of its first request.
fn pass_on(mut client: UnixStream, engine: &Path, meet: impl Fn(&str)) -> Option<()> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        line.extend(byte);
    }
    meet(String::from_utf8_lossy(&line).trim());
    let mut engine = UnixStream::connect(engine).ok()?;
    engine.write_all(&line).ok()?;
    let (mut from, mut to) = (engine.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        to.shutdown(Shutdown::Write)
    });
    let _ = io::copy(&mut client, &mut engine);
    engine.shutdown(Shutdown::Write).ok()
}

/// Removes the group, which is empty by now, from every hierarchy.
fn remove_groups(group: &str) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in mounts.lines() {
        let [_, at, "cgroup" | "cgroup2", ..] = *line.split(' ').collect::<Vec<_>>() else { continue };
        remove(&Path::new(at).join(group.trim_start_matches('/')));
    }
}

fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path());
    }
    let _ = fs::remove_dir(path);
}

fn put(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text)?;
    match fs::set_permissions(path, fs::Permissions::from_mode(0o755)) {
        Ok(()) => Ok(()),
        Err(error) => bail!("chmod {}: {error}", path.display()),
    }
}

//! The actors of a scene. Every actor connects to the scene's socket by itself, whoever started it, and takes
//! orders there.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, channel},
    },
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::{net::sockopt::socket_peercred, process::Signal};
use serde_json::{Value, json};

use crate::{
    host::{Identity, PATIENCE},
    part::Part,
};

const SCRIPT: &str = include_str!("../actors/actor.py");

/// All actors that have connected.
#[derive(Debug)]
pub(crate) struct Cast {
    folder: PathBuf,
    hellos: Mutex<HashMap<String, Result<Hello, String>>>,
    came: Condvar,
}

#[derive(Debug)]
struct Hello {
    id: Identity,
    line: UnixStream,
    answers: Receiver<Value>,
}

impl Cast {
    /// Listens in `folder`.
    pub(crate) fn assemble(folder: &Path) -> Result<Arc<Self>> {
        let bin = folder.join("bin");
        std::fs::create_dir(&bin).with_context(|| format!("make {}", bin.display()))?;
        let listener = UnixListener::bind(folder.join("scene.sock")).context("bind scene.sock")?;
        open_to_all(&folder.join("scene.sock"), 0o666)?;
        let cast =
            Arc::new(Self { folder: folder.to_owned(), hellos: Mutex::default(), came: Condvar::new() });
        let stage_door = Arc::clone(&cast);
        // Runs until the process of the test ends.
        thread::spawn(move || {
            for line in listener.incoming().flatten() {
                let cast = Arc::clone(&stage_door);
                thread::spawn(move || cast.attend(&line));
            }
        });
        Ok(cast)
    }

    /// The path of the actor's script under `name`; it is created on first use.
    pub(crate) fn script(&self, name: &str) -> Result<String> {
        self.put(name, SCRIPT)
    }

    /// The path of a program with this text under `name`; it is created on first use.
    pub(crate) fn put(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join("bin").join(name);
        if !path.exists() {
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            open_to_all(&path, 0o755)?;
        }
        Ok(path.to_string_lossy().into_owned())
    }

    /// Waits for the actor `alias` to connect.
    pub(crate) fn expect(self: &Arc<Self>, alias: &str) -> Result<Actor> {
        let (mut hellos, _) = self
            .came
            .wait_timeout_while(lock(&self.hellos), PATIENCE, |h| !h.contains_key(alias))
            .unwrap_or_else(PoisonError::into_inner);
        match hellos.remove(alias) {
            Some(Ok(hello)) => Ok(Actor {
                alias: alias.into(),
                id: hello.id,
                cast: Arc::clone(self),
                hello: Mutex::new(hello),
            }),
            Some(Err(why)) => bail!("{alias}: {why}"),
            None => bail!("{alias} did not say hello within {PATIENCE:?}"),
        }
    }

    /// Records the actor at the other end, then passes its answers on.
    fn attend(&self, line: &UnixStream) {
        let mut lines = BufReader::new(line).lines().map_while(Result::ok);
        let Some(told) = lines.next().and_then(|l| serde_json::from_str::<Value>(&l).ok()) else { return };
        let (answer, answers) = channel();
        let hello = identify(&told, line).map(|(id, line)| Hello { id, line, answers });
        let alias = told.get("hello").and_then(Value::as_str).unwrap_or_default().to_owned();
        lock(&self.hellos).insert(alias, hello.map_err(|e| format!("{e:#}")));
        self.came.notify_all();
        for value in lines.filter_map(|l| serde_json::from_str(&l).ok()) {
            if answer.send(value).is_err() {
                return;
            }
        }
    }
}

/// The process at the other end, according to the kernel and to itself; both must agree.
fn identify(told: &Value, line: &UnixStream) -> Result<(Identity, UnixStream)> {
    let pid = socket_peercred(line)?.pid.as_raw_nonzero().get();
    let id = Identity::of(pid.try_into()?).context("it ended while saying hello")?;
    ensure!(id == *told, "the kernel says {id}, the actor says {told}");
    Ok((id, line.try_clone()?))
}

fn open_to_all(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .with_context(|| format!("chmod {}", path.display()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process of the scene that takes orders.
#[derive(Debug)]
pub struct Actor {
    /// Its name in the scene.
    pub alias: String,
    /// Its process.
    pub id: Identity,
    cast: Arc<Cast>,
    hello: Mutex<Hello>,
}

impl Actor {
    /// Sends an order (the `do_*` of `actors/actor.py`) and returns the answer.
    pub fn send_order(&self, order: &Value) -> Result<Value> {
        let hello = lock(&self.hello);
        (&hello.line)
            .write_all(format!("{order}\n").as_bytes())
            .with_context(|| format!("tell {}", self.alias))?;
        let answer =
            hello.answers.recv_timeout(PATIENCE).with_context(|| format!("{}: {order}", self.alias))?;
        ensure!(answer.get("error").is_none(), "{}: {order}: {answer}", self.alias);
        Ok(answer)
    }

    /// Sends an order without arguments.
    pub fn act(&self, verb: &str) -> Result<Value> {
        self.send_order(&json!({ "do": verb }))
    }

    /// Makes it start a part, and waits for the new actor.
    pub fn start(&self, part: &Part) -> Result<Actor> {
        self.send_order(&part.order("start", &self.cast.script(&part.script)?))?;
        self.cast.expect(&part.alias)
    }

    /// Makes it exec: the same process becomes another part.
    pub fn become_part(self, part: &Part) -> Result<Actor> {
        self.send_order(&part.order("exec", &self.cast.script(&part.script)?))?;
        let next = self.cast.expect(&part.alias)?;
        ensure!(next.id == self.id, "an exec changed {} into {}", self.id, next.id);
        Ok(next)
    }

    /// Makes it fork without exec. The child is an actor of its own with all descriptors of its parent.
    pub fn fork(&self, alias: &str) -> Result<Actor> {
        self.send_order(&json!({ "do": "fork", "as": alias }))?;
        self.cast.expect(alias)
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.id.signal(signal)
    }

    /// Sends SIGKILL and waits for its end.
    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.id.wait_gone()
    }

    /// Makes it call exit(2) and waits for its end.
    pub fn exit(&self) -> Result<()> {
        self.act("exit")?;
        self.id.wait_gone()
    }
}

//! What the processes of services tell of themselves, by a line to the scene's socket before they do anything else. The kernel
//! adds who is at the other end, under the number it has on this side of all namespaces.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use anyhow::{Context, Result, bail};
use rustix::net::sockopt::socket_peercred;
use serde_json::{Value, json};

use crate::host::{Identity, PATIENCE};

/// One process, by its own word and the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Which process it is.
    pub id: Identity,
    /// Whether it plays an agent.
    pub agent: bool,
    /// The name of its program.
    pub name: String,
    /// What it was called by who started it; an agent: the play it plays.
    pub alias: String,
    /// `INVOCATION_ID` in its environment.
    pub invocation: String,
}

/// All that was told so far, in the order of telling.
#[derive(Debug, Default)]
pub struct Truth {
    told: Mutex<Vec<Told>>,
    came: Condvar,
}

impl Truth {
    /// Listen in `folder`, on `truth.sock`.
    pub fn listen(folder: &Path) -> Result<Arc<Self>> {
        let path = folder.join("truth.sock");
        let listener = UnixListener::bind(&path).with_context(|| format!("bind {}", path.display()))?;
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
        let truth = Arc::new(Self::default());
        let ear = Arc::clone(&truth);
        // Ends with the test's process: nobody joins it. One at a time, so that the order is that of telling.
        thread::spawn(move || {
            for line in listener.incoming().flatten() {
                if let Err(error) = ear.hear(&line) {
                    eprintln!("orphand tests: a process told nonsense: {error:#}");
                }
            }
        });
        Ok(truth)
    }

    fn hear(&self, line: &UnixStream) -> Result<()> {
        line.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        BufReader::new(line).read_line(&mut text)?;
        let value: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        let pid = socket_peercred(line)?.pid.as_raw_nonzero().get().try_into()?;
        let start = value.get("start").and_then(Value::as_u64).context("no start")?;
        let word = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let told = Told {
            id: Identity { pid, start },
            agent: word("role") == "agent",
            name: word("name"),
            alias: word("as"),
            invocation: word("invocation"),
        };
        self.lock().push(told);
        self.came.notify_all();
        // Only now does it go on.
        let mut line = line;
        line.write_all(b"\n").context("nod")
    }

    /// Everybody so far.
    pub fn all(&self) -> Vec<Told> {
        self.lock().clone()
    }

    /// The agents of a play so far: the first one is that of its first run.
    pub fn agents(&self, play: &str) -> Vec<Told> {
        self.all().into_iter().filter(|t| t.agent && t.alias == play).collect()
    }

    /// Who is not an agent, of one start of a service.
    pub fn servers(&self, invocation: &str) -> Vec<Told> {
        self.all().into_iter().filter(|t| !t.agent && t.invocation == invocation).collect()
    }

    /// The latest process called `alias`, when there have been `count` of them.
    pub fn wait(&self, alias: &str, count: usize) -> Result<Told> {
        let few = |told: &mut Vec<Told>| told.iter().filter(|t| t.alias == alias).count() < count;
        let (told, _) =
            self.came.wait_timeout_while(self.lock(), PATIENCE, few).unwrap_or_else(PoisonError::into_inner);
        let all: Vec<&Told> = told.iter().filter(|t| t.alias == alias).collect();
        match all.last() {
            Some(last) if all.len() >= count => Ok((*last).clone()),
            _ => bail!("{} of {count} called {alias} within {PATIENCE:?}", all.len()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tell who this process is to the truth of its scene, which is the folder above its program's, and wait for the nod.
pub fn tell(role: &str, alias: &str) -> Result<()> {
    let program = env::args_os().next().map(PathBuf::from).context("no argv[0]")?;
    let id = Identity::of(process::id()).context("no identity")?;
    let truth = program.ancestors().nth(2).context("it lies in no scene")?.join("truth.sock");
    let mut line = UnixStream::connect(&truth).with_context(|| format!("connect {}", truth.display()))?;
    let told = json!({
        "role": role, "name": program.file_name().map(|n| n.to_string_lossy()), "as": alias,
        "pid": id.pid, "start": id.start, "invocation": env::var("INVOCATION_ID").unwrap_or_default(),
    });
    line.write_all(format!("{told}\n").as_bytes()).context("tell")?;
    line.read_exact(&mut [0]).context("nobody listens")
}

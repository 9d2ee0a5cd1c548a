//! What the processes of services report about themselves, by one line to the scene's socket before they do
//! anything else. The kernel adds the process id on this side of all namespaces.

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

/// The report of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its process.
    pub id: Identity,
    /// Whether it is an agent.
    pub agent: bool,
    /// The name of its program.
    pub name: String,
    /// Its name in the scene; for an agent, the name of its play.
    pub alias: String,
    /// `INVOCATION_ID` in its environment.
    pub invocation: String,
}

/// All reports so far, in order.
#[derive(Debug, Default)]
pub struct Truth {
    told: Mutex<Vec<Told>>,
    came: Condvar,
}

impl Truth {
    /// Listens in `folder` on `truth.sock`.
    pub fn listen(folder: &Path) -> Result<Arc<Self>> {
        let path = folder.join("truth.sock");
        let listener = UnixListener::bind(&path).with_context(|| format!("bind {}", path.display()))?;
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
        let truth = Arc::new(Self::default());
        let ear = Arc::clone(&truth);
        // Runs until the process of the test ends. One report at a time, to keep the order.
        thread::spawn(move || {
            for line in listener.incoming().flatten() {
                if let Err(error) = ear.receive(&line) {
                    eprintln!("orphand tests: a process told nonsense: {error:#}");
                }
            }
        });
        Ok(truth)
    }

    fn receive(&self, line: &UnixStream) -> Result<()> {
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
        // The process continues only now.
        let mut line = line;
        line.write_all(b"\n").context("nod")
    }

    /// All reports so far.
    pub fn all(&self) -> Vec<Told> {
        self.lock().clone()
    }

    /// The agents of a play so far, by the order of its runs.
    pub fn agents(&self, play: &str) -> Vec<Told> {
        self.all().into_iter().filter(|t| t.agent && t.alias == play).collect()
    }

    /// The processes of one start of a service, without its agent.
    pub fn servers(&self, invocation: &str) -> Vec<Told> {
        self.all().into_iter().filter(|t| !t.agent && t.invocation == invocation).collect()
    }

    /// Waits until there have been `count` processes called `alias`; returns the latest.
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

/// Reports this process to its scene, which is the folder above its program's, and waits for the
/// acknowledgement.
pub fn report_self(role: &str, alias: &str) -> Result<()> {
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

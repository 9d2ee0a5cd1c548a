//! Plays situations: builds a few at a time, waits for the verdicts, asks whether use continued, ends them.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::{
    line::Fates,
    script::{self, Script},
    shared::Shared,
    stated::{Cast, Stated},
};
use crate::{fixtures::Fixtures, host::Identity, scene::Scene};

/// How many are built at the same time.
const AT_A_TIME: usize = 4;

/// How many are ended at the same time.
const CLOSED_AT_A_TIME: usize = 32;

/// The timeout for building or ending one. Published software starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many characters of a command line a message shows.
const WIDTH: usize = 100;

/// Between two looks at those that are being built.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A situation that has been built.
#[derive(Debug)]
pub struct Situation {
    /// What its script states.
    pub stated: Stated,
    /// Its processes.
    pub cast: Cast,
    /// Why it could not be built or closed; absent if it could.
    pub broken: Option<String>,
    /// When it was built.
    built: Instant,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
}

/// Builds those of `scripts` for which `wanted` holds, and does `meanwhile` again and again.
pub fn build(
    s: &Scene,
    scripts: &[Script],
    shared: &Shared,
    wanted: impl Fn(&Stated) -> bool,
    mut meanwhile: impl FnMut() -> Result<()>,
) -> Result<Vec<Situation>> {
    let began = Instant::now();
    let mut waiting = scripts.iter().filter(|script| wanted(&script.stated));
    let mut started: Vec<StartingSituation> = Vec::new();
    let mut built = Vec::new();
    loop {
        while started.len() < AT_A_TIME
            && let Some(script) = waiting.next()
        {
            started.push(StartingSituation::new(s, script, shared)?);
        }
        if started.is_empty() {
            break;
        }
        // Whichever is built first makes room for the next: published software takes seconds.
        built.extend(started.extract_if(.., StartingSituation::is_ready).map(StartingSituation::finish));
        meanwhile()?;
        thread::sleep(LOOK_AGAIN);
    }
    eprintln!("judgement: {} situations built in {:.1?}", built.len(), began.elapsed());
    Ok(built)
}

/// A situation that is being built.
struct StartingSituation {
    play: Situation,
    /// The line that says what it consists of, or why there is none.
    told: Option<Result<String>>,
}

impl StartingSituation {
    fn new(s: &Scene, script: &Script, shared: &Shared) -> Result<Self> {
        let Script { path, stated } = script;
        // Short, because the path of a socket may have at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("s").rand_bytes(4).tempdir_in(s.folder())?.keep();
        let log = folder.with_extension("log");
        // A control group of its own, in which it finds its processes among the thousands of all.
        let group = folder.file_name().context("a folder has a name")?.to_string_lossy();
        let [enter, procs] = s.enter_room(&group)?;
        let mut command = Command::new(enter);
        command
            .arg(&procs)
            .args(script::player())
            .arg(path)
            .arg(&stated.name)
            .env("ORPHAND_SITUATION_PROCS", &procs);
        command.env("ORPHAND_SITUATION", &stated.name).env("ORPHAND_SITUATION_DIR", &folder);
        command.envs(shared.environment(stated));
        if stated.needs_fixtures() {
            let fixtures =
                Fixtures::open().with_context(|| format!("{} needs {:?}", stated.name, stated.needs))?;
            command.envs(fixtures.environment());
        }
        let errors = fs::File::create(&log).with_context(|| format!("make {}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().with_context(|| format!("start {}", stated.name))?;
        let stdout = child.stdout.take().context("no stdout")?;
        let (line, lines) = channel();
        thread::spawn(move || {
            for text in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.send(text).is_err() {
                    return;
                }
            }
        });
        let (stated, cast, stdin) = (stated.clone(), Cast::default(), child.stdin.take());
        let built = Instant::now();
        let play = Situation { stated, cast, broken: None, built, child, stdin, lines, log };
        Ok(Self { play, told: None })
    }

    /// Whether building it has ended, well or not.
    fn is_ready(&mut self) -> bool {
        self.told = match self.play.lines.try_recv() {
            Ok(line) => Some(Ok(line)),
            Err(TryRecvError::Empty) if self.play.built.elapsed() < PATIENCE => None,
            Err(_) => Some(Err(anyhow!("it was not built: {}", self.play.errors()))),
        };
        self.told.is_some()
    }

    /// A situation that cannot be built is a line of the table, too, because the judge may be the reason.
    fn finish(self) -> Situation {
        let mut play = self.play;
        match self
            .told
            .unwrap_or_else(|| Err(anyhow!("it is still being built")))
            .and_then(|line| Cast::parse(&line))
        {
            Ok(cast) => play.cast = cast,
            Err(error) => play.broken = Some(format!("{error:#}")),
        }
        if play.broken.is_none() && play.cast.all().next().is_none() {
            play.broken = Some("it has no processes".to_owned());
        }
        play.built = Instant::now();
        play
    }
}

/// Waits until all orphans have been ended that can be proven, for at most `ends`, and until everything in use has run for
/// `stands`.
pub fn wait_for_ends(plays: &[Situation], stands: Duration, ends: Duration) {
    for play in plays.iter().filter(|play| play.stated.cost.is_none()) {
        let gone = || !play.cast.orphans.iter().any(|one| one.alive());
        while !gone() && play.built.elapsed() < ends {
            thread::sleep(Duration::from_millis(50));
        }
    }
    // This waits for no event: it is the time in which a wrong signal would arrive, where there is who must not get one.
    let in_use = plays.iter().filter(|play| !play.cast.in_use.is_empty());
    let newest = in_use.map(|play| play.built.elapsed()).min().unwrap_or(stands);
    thread::sleep(stands.saturating_sub(newest));
}

/// Ends all situations, a few at a time. Returns whether use continued, as they report it.
pub fn close(plays: &mut [Situation]) -> Vec<Option<bool>> {
    let mut uses = Vec::new();
    for some in plays.chunks_mut(CLOSED_AT_A_TIME) {
        for stdin in some.iter_mut().filter_map(|play| play.stdin.as_mut()) {
            // A script that has already ended reports that below.
            let _ = stdin.write_all(b"judge over\n");
        }
        for play in some {
            let closed = if play.broken.is_some() { Ok(None) } else { play.close() };
            uses.push(closed.unwrap_or_else(|error| {
                play.broken = Some(format!("{error:#}"));
                None
            }));
            if let Some(why) = &play.broken {
                eprintln!("{}: broken: {why}", play.stated.name);
            }
        }
    }
    uses
}

impl Situation {
    /// The present fate of its processes.
    pub fn fates(&self) -> Fates {
        let gone = |all: &[Identity]| all.iter().filter(|one| !one.alive()).copied().collect::<Vec<_>>();
        let fates = Fates {
            cast: self.cast.clone(),
            ended: gone(&self.cast.orphans),
            harmed: gone(&self.cast.in_use),
        };
        for one in self.cast.orphans.iter().filter(|one| self.stated.cost.is_none() && one.alive()) {
            let command = one.argv().join(" ");
            let shown =
                command.char_indices().nth(WIDTH).map_or(command.as_str(), |(end, _)| &command[..end]);
            eprintln!("{}: left: {one} {shown}", self.stated.name);
        }
        for one in &fates.harmed {
            eprintln!("{}: ended although in use: {one}", self.stated.name);
        }
        fates
    }

    fn close(&mut self) -> Result<Option<bool>> {
        let line = self.line("say whether use went on")?;
        let told: Value = serde_json::from_str(&line).with_context(|| format!("not JSON: {line:?}"))?;
        self.stdin = None;
        let status = self.child.wait().context("wait for it")?;
        ensure!(status.success(), "it ended with {status}: {}", self.errors());
        Ok(told.get("use_went_on").and_then(Value::as_bool))
    }

    fn line(&mut self, what: &str) -> Result<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Ok(line),
            Err(_) => bail!("it did not {what}: {}", self.errors()),
        }
    }

    fn errors(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

//! Plays situations: builds a few at a time, waits for the verdicts, asks whether use continued, ends them.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{
    line::Fates,
    script::Script,
    shared::Shared,
    stated::{Cast, Stated},
};
use crate::{fixtures::Fixtures, host::Identity, scene::Scene};

/// How many are built at the same time.
const AT_A_TIME: usize = 4;

/// The timeout for building or ending one. Published software starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// Builds those of `scripts` for which `wanted` holds.
pub fn build(
    s: &Scene,
    scripts: &[Script],
    shared: &Shared,
    wanted: impl Fn(&Stated) -> bool,
) -> Result<Vec<Situation>> {
    let scripts: Vec<&Script> = scripts.iter().filter(|script| wanted(&script.stated)).collect();
    let began = Instant::now();
    let (tell, spoke) = channel();
    let mut started: Vec<(usize, StartingSituation)> = Vec::new();
    let mut built = Vec::new();
    for (number, script) in scripts.into_iter().enumerate() {
        if started.len() == AT_A_TIME {
            // One more is started as soon as any of them is built; the oldest is waited for if none is in time.
            let first = spoke.recv_timeout(PATIENCE).ok();
            let first = started.iter().position(|(number, _)| Some(*number) == first).unwrap_or(0);
            built.push(started.remove(first).1.wait());
        }
        let tell = tell.clone();
        let speaks = move || {
            let _ = tell.send(number);
        };
        started.push((number, StartingSituation::new(s, script, shared, speaks)?));
    }
    built.extend(started.into_iter().map(|(_, one)| one.wait()));
    eprintln!("judgement: {} situations built in {:.1?}", built.len(), began.elapsed());
    Ok(built)
}

/// A situation that is being built.
struct StartingSituation(Situation);

impl StartingSituation {
    /// Starts its script. `speaks` is called once, when the script has printed its first line, or can print no more.
    fn new(
        s: &Scene,
        script: &Script,
        shared: &Shared,
        speaks: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        let Script { path, stated } = script;
        // Short, because the path of a socket may have at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("s").rand_bytes(4).tempdir_in(s.folder())?.keep();
        let log = folder.with_extension("log");
        let mut command = s.command(&path.to_string_lossy())?;
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
            let mut texts = BufReader::new(stdout).lines().map_while(Result::ok);
            let first = texts.next();
            let listened = first.is_none_or(|first| line.send(first).is_ok());
            speaks();
            for text in texts.take_while(|_| listened) {
                if line.send(text).is_err() {
                    return;
                }
            }
        });
        let (stated, cast, stdin) = (stated.clone(), Cast::default(), child.stdin.take());
        Ok(Self(Situation { stated, cast, broken: None, built: Instant::now(), child, stdin, lines, log }))
    }

    /// A situation that cannot be built is a line of the table, too, because the judge may be the reason.
    fn wait(self) -> Situation {
        let mut play = self.0;
        match play.line("be built").and_then(|line| Cast::parse(&line)) {
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

/// Waits until all orphans have been ended that can be proven, for at most `ends`, and until everything has run for
/// `stands`.
pub fn wait_for_ends(plays: &[Situation], stands: Duration, ends: Duration) {
    for play in plays.iter().filter(|play| play.stated.cost.is_none()) {
        let gone = || !play.cast.orphans.iter().any(|one| one.alive());
        while !gone() && play.built.elapsed() < ends {
            thread::sleep(Duration::from_millis(50));
        }
    }
    // This waits for no event: it is the time in which a wrong signal would arrive.
    let newest = plays.iter().map(|play| play.built.elapsed()).min().unwrap_or(stands);
    thread::sleep(stands.saturating_sub(newest));
}

/// Ends all situations, a few at a time. Returns whether use continued, as they report it.
pub fn close(plays: &mut [Situation]) -> Vec<Option<bool>> {
    let mut uses = Vec::new();
    for some in plays.chunks_mut(4 * AT_A_TIME) {
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
        for one in self.cast.orphans.iter().filter(|one| one.alive()) {
            eprintln!("{}: left: {one} {:?}", self.stated.name, one.argv());
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

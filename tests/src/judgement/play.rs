//! Plays situations: builds a few at a time, asks the judge about those that have stood long enough, asks them whether use
//! continued, ends them. So only those of about a minute run side by side.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    slice,
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, TryRecvError, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::{
    line::{Fates, Line},
    said::Said,
    script::{self, Script},
    shared::Shared,
    stated::{Cast, Stated},
};
use crate::{fixtures::Fixtures, host::Identity, scene::Scene};

/// How many are built at the same time.
const AT_A_TIME: usize = 6;

/// How long processes in use must be left running after they were built: servers whose owner is not known are judged half a
/// minute after others, engines of containers are asked, and then come the grace period and the term timeout.
const STANDS: Duration = Duration::from_secs(60);

/// How long the end of a true orphan may take.
const ENDS: Duration = Duration::from_secs(120);

/// Between two looks at those that stand.
const LOOK_WHO_STANDS: Duration = Duration::from_millis(500);

/// The timeout for building or ending one. Published software starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many characters of a command line a message shows.
const WIDTH: usize = 100;

/// Between two looks at those that are being built.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The number of the next one.
static NUMBER: AtomicU32 = AtomicU32::new(1);

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

/// Who judges what has been built.
pub trait Judging {
    /// Does what is to be done again and again while situations are built, and once more when `all_built`.
    fn meanwhile(&mut self, all_built: bool) -> Result<()>;

    /// Whether orphans are ended before it is asked.
    fn waits_for_ends(&self) -> bool;

    /// Begins to judge all that there is.
    fn ask(&mut self) -> Result<()>;

    /// Whether all that was there at the last question has been judged.
    fn has_answered(&mut self) -> Result<bool>;

    /// What became of each of these.
    fn result(&mut self, plays: &[Situation]) -> Vec<(Fates, Said)>;
}

/// Builds these.
pub fn build(s: &Scene, scripts: &[Script], shared: &Shared) -> Result<Vec<Situation>> {
    let (mut built, mut site) = (Vec::new(), Site::new(s, scripts, shared));
    while !site.is_empty() {
        built.extend(site.work()?);
        thread::sleep(LOOK_AGAIN);
    }
    Ok(built)
}

/// Builds these, has them and those that are there already judged, and ends them. Returns a line for each.
pub fn play(
    s: &Scene,
    scripts: &[Script],
    shared: &Shared,
    there: Vec<Situation>,
    judge: &mut dyn Judging,
) -> Result<Vec<Line>> {
    let began = Instant::now();
    let (mut site, mut looked, mut built) = (Site::new(s, scripts, shared), began, None);
    let (mut asked, mut ends, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let mut standing: Vec<Situation> =
        there.into_iter().map(|play| Situation { built: began, ..play }).collect();
    loop {
        standing.extend(site.work()?);
        judge.meanwhile(site.is_empty())?;
        if site.is_empty() {
            built.get_or_insert_with(|| began.elapsed());
        }
        if asked.is_empty() && looked.elapsed() >= LOOK_WHO_STANDS {
            looked = Instant::now();
            let waits = judge.waits_for_ends();
            asked.extend(standing.extract_if(.., |play| play.is_due(waits)));
            if !asked.is_empty() {
                judge.ask()?;
            }
        } else if !asked.is_empty() && judge.has_answered()? {
            let results = judge.result(&asked);
            ends.extend(
                asked
                    .drain(..)
                    .zip(results)
                    .map(|(play, (fates, said))| thread::spawn(move || play.finish(&fates, said))),
            );
        }
        for end in ends.extract_if(.., |end: &mut JoinHandle<Line>| end.is_finished()) {
            lines.push(end.join().map_err(|_| anyhow!("the end of a situation panicked"))?);
        }
        if site.is_empty() && standing.is_empty() && asked.is_empty() && ends.is_empty() {
            let (all, built, played) = (lines.len(), built.unwrap_or_default(), began.elapsed());
            eprintln!("judgement: {all} situations built in {built:.1?}, played in {played:.1?}");
            return Ok(lines);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Where situations are built, a few at a time.
struct Site<'a> {
    scene: &'a Scene,
    shared: &'a Shared,
    waiting: slice::Iter<'a, Script>,
    started: Vec<StartingSituation>,
}

impl<'a> Site<'a> {
    fn new(scene: &'a Scene, scripts: &'a [Script], shared: &'a Shared) -> Self {
        Self { scene, shared, waiting: scripts.iter(), started: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.waiting.len() == 0 && self.started.is_empty()
    }

    /// Begins the next ones where there is room, and returns those that have been built.
    fn work(&mut self) -> Result<Vec<Situation>> {
        while self.started.len() < AT_A_TIME
            && let Some(script) = self.waiting.next()
        {
            self.started.push(StartingSituation::new(self.scene, script, self.shared)?);
        }
        // Whichever is built first makes room for the next: published software takes seconds.
        let ready = self.started.extract_if(.., StartingSituation::is_ready);
        Ok(ready.map(StartingSituation::finish).collect())
    }
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
        // Short, because the path of a socket may have at most 107 bytes. Not drawn: containers and sessions have it in their names,
        // and what is drawn may look like the announcement of a secret (`sabcH`), of which a recording masks what follows.
        let folder = s.folder().join(format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
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

impl Situation {
    /// Whether the judge can be asked: its orphans have been ended or had the time for it, and what is in use has run for
    /// long enough that a wrong signal would have come.
    fn is_due(&self, waits_for_ends: bool) -> bool {
        if self.broken.is_some() {
            return true;
        }
        let stood = self.built.elapsed();
        let are_to_end = waits_for_ends && self.stated.cost.is_none();
        let nobody_stays = are_to_end && self.cast.in_use.is_empty();
        let all_ended = || !self.cast.orphans.iter().any(|one| one.alive());
        (nobody_stays || stood >= STANDS) && (!are_to_end || stood >= ENDS || all_ended())
    }

    /// Ends it, and says what came of it.
    fn finish(mut self, fates: &Fates, said: Said) -> Line {
        let mut use_went_on = None;
        if self.broken.is_none() {
            match self.close() {
                Ok(went_on) => use_went_on = went_on,
                Err(error) => self.broken = Some(format!("{error:#}")),
            }
        }
        match &self.broken {
            Some(why) => {
                eprintln!("{}: broken: {why}", self.stated.name);
                Line::broken(&self.stated)
            }
            None => Line::new(&self.stated, fates, use_went_on, said),
        }
    }

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

    /// Returns whether use continued, as it reports it.
    fn close(&mut self) -> Result<Option<bool>> {
        if let Some(stdin) = &mut self.stdin {
            // A script that has already ended reports that below.
            let _ = stdin.write_all(b"judge over\n");
        }
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

//! `orphand explain`: gathers the facts. The daemon is asked first; without one an engine looks through /proc. The
//! line of creators goes on above what the engine follows, from /proc, and what has ended is in the store.

use super::offline::Offline;
use crate::{
    cli::{self, ExitCode, Places, logging},
    config::{Loaded, Spared, shown},
    control::client::{Client, ClientError},
    explain::{self, Explanation, Moment},
    host::{
        Proc, ProcessDir, boot_id,
        identity::{Presence, presence},
    },
    os::{clock, users::local_names},
    probe::Probe,
    store,
};
use orphand_core::{
    model::{
        Asked, Creator, EXPLAINED, ExemptedBy, Explained, Guard, History, HistoryQuery, Holdings, Image,
        NoServer, Nothing, PastOrphan, PastRun, ProcessId, ProcessView, Report, Stdio, redact,
        text::{in_quotes, quoted},
    },
    recognise::{Known, Rule, Rules},
};

const ENDED: usize = 8;

pub fn explain(flags: &cli::Explain) -> anyhow::Result<ExitCode> {
    logging::start();
    let asked = Asked::from(flags.process.as_str());
    let all = gather(&flags.common.places, &asked)?;
    let nothing = all.living.is_empty() && all.ended.is_empty();
    super::answer(flags.common.json, &explain::json(&all, &moment()), |_| {
        if nothing {
            String::new()
        } else if flags.report {
            let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
            explain::report(&all, &moment(), &kernel)
        } else {
            explain::render(&all, &moment(), Some(explain::WIDTH), super::paint())
        }
    })?;
    if nothing {
        let told = quoted(&flags.process);
        if let Some(run) = &all.ran {
            return Ok(super::unmatched(&explain::ran(&told, run, &moment())));
        }
        let alone = (!all.asked_daemon).then_some("no daemon was asked");
        let why = all.blind.first().map(String::as_str).or(alone);
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        return Ok(super::unmatched(&format!("{told} is no process, and no server in the store{why}")));
    }
    Ok(ExitCode::Done)
}

/// What is known of a process; nothing, if neither the host nor the store knows of it.
pub(crate) fn gather(places: &Places, asked: &Asked) -> anyhow::Result<Explanation> {
    let client = Client::new(places.socket());
    let (mut all, report) = living(places, &client, asked)?;
    let (proc, probe) = (Proc::system()?, Probe::new()?);
    // The daemon has answered by its own: these are for what it does not follow.
    let unread = |mistake| {
        all.blind.push(format!("the rules of the configuration: {mistake}"));
        Rules::default()
    };
    let loaded = Loaded::read(places.config.as_deref());
    let rules = loaded.as_ref().map_or_else(unread, |loaded| loaded.config.rules());
    if all.living.is_empty() {
        all.living.extend(untold(&proc, &rules, asked));
    }
    all.more = all.living.len() > EXPLAINED;
    all.living.truncate(EXPLAINED);
    for one in &mut all.living {
        complete(&proc, &rules, one);
        one.keeps = report.kept_by(one.id());
        one.exempted_by = loaded.as_ref().ok().and_then(|loaded| exempted_by(loaded, one));
        if one.holdings == Holdings::default() {
            one.holdings = probe.holdings(&one.processes());
        }
    }
    if all.living.is_empty() {
        let past = past(places, &client, &mut all);
        // Of the agents of a run the first one is known, as `npx` around another, and whose a server was.
        let servers = || past.orphans.iter().chain(&past.unproven).chain(&past.never_judged);
        let owned = |one: &PastOrphan| one.owner_id.as_deref().is_some_and(|id| is_past(asked, id));
        let of_run =
            |server: &PastOrphan, one: &PastRun| server.run.as_ref() == Some(&one.run) && owned(server);
        let has = |one: &PastRun| is_past(asked, &one.id) || servers().any(|server| of_run(server, one));
        let is_meant = |one: &&PastRun| match asked {
            Asked::Name(name) => one.run.is_called(name),
            _ => has(one),
        };
        all.ran = past.runs.iter().rfind(is_meant).cloned();
        all.ended = ended(asked, past);
    }
    Ok(all)
}

pub(crate) fn moment() -> Moment {
    Moment { now: clock::now(), wall: super::wall_clock(), zone: clock::zone(), users: local_names() }
}

/// What the daemon knows of it, and of all; without one, what /proc shows.
fn living(places: &Places, client: &Client, asked: &Asked) -> anyhow::Result<(Explanation, Report)> {
    let mut all = Explanation::default();
    if !places.names_store_alone() {
        match super::asked(client.explain(asked.clone()))? {
            Ok(living) => {
                let report = client.status(false).map(|status| status.report).unwrap_or_default();
                return Ok((Explanation { living, asked_daemon: true, ..all }, report));
            }
            Err(error @ ClientError::Forbidden { .. }) => {
                all.blind.push(format!("what the daemon knows: {error}"));
            }
            Err(_) => {}
        }
    }
    let offline = Offline::inspect(places)?;
    all.living = offline.explain(asked);
    let report = offline.report();
    // What could not be seen of others is no reason why this one is not there.
    if !all.living.is_empty() {
        all.blind.extend(report.blind.clone());
    }
    Ok((all, report))
}

/// A living process that no engine follows.
fn untold(proc: &Proc, rules: &Rules, asked: &Asked) -> Option<Explained> {
    let dir = super::living_process(proc, asked)?;
    let image = dir.image();
    let nothing = why_nothing(&dir, &image, rules);
    let (ProcessId { pid, start }, uid) = (dir.id(), dir.uid().unwrap_or_default());
    let Image { exe, argv, argv_truncated } = image;
    let argv = redact::argv(&argv);
    let process = ProcessView { pid, start, uid, exe, argv, argv_truncated, stale_binary: false };
    Some(Explained::nothing(process, nothing))
}

/// The rule of the configuration that a guard names, and where it is.
fn exempted_by(loaded: &Loaded, one: &Explained) -> Option<ExemptedBy> {
    let step =
        one.report.as_ref()?.guarded_by.iter().find(|step| step.by == Guard::ExemptRule.reason().name)?;
    let is_meant = |rule: &Rule| step.via.ends_with(&in_quotes(&rule.name));
    let index = loaded.config.exempt.iter().position(is_meant)?;
    let location = loaded.origins.location("exempt", index)?;
    let line = location.line.map(|line| format!(", line {line}")).unwrap_or_default();
    let spared = location.file.ends_with(Spared::FILE);
    let rule = loaded.config.exempt.get(index)?.name.clone();
    Some(ExemptedBy { rule, place: format!("{}{line}", shown(&location.file)), spared })
}

fn why_nothing(dir: &ProcessDir, image: &Image, rules: &Rules) -> Nothing {
    if dir.stat().is_kernel_thread() {
        return Nothing { reason: NoServer::KernelThread, rule: None, streams: [Stdio::Closed; 2] };
    }
    // Whatever it runs, the kernel gives it all that others leave.
    if dir.id().pid == 1 {
        return Nothing { reason: NoServer::ServiceManager, rule: None, streams: [Stdio::Closed; 2] };
    }
    let streams = dir.fd_table().is_ok().then(|| dir.stdio()).map(|[stdin, stdout, _]| [stdin, stdout]);
    rules.why_nothing(image, Known { streams, ..Known::default() })
}

/// Says why it is nothing where its streams cannot be read, or it is the first process; of each creator whether it lives and what it runs; and adds those above that no engine follows.
fn complete(proc: &Proc, rules: &Rules, one: &mut Explained) {
    // A look through /proc takes streams that it may not read for closed ones.
    if let (Some(nothing), Ok(Some(dir))) = (&mut one.nothing, proc.identified(one.process.id()))
        && (dir.id().pid == 1 || dir.fd_table().is_err())
    {
        *nothing = why_nothing(&dir, &dir.image(), rules);
    }
    for creator in one.creators.iter_mut().filter(|one| one.program.is_none() || one.uid.is_none()) {
        let Ok(Some(dir)) = proc.identified(creator.id) else { continue };
        let Creator { program, uid, .. } = parent(&dir, rules);
        creator.program = creator.program.take().or(program);
        creator.uid = creator.uid.or(uid);
    }
    for creator in one.creators.iter_mut().filter(|creator| creator.alive.is_none()) {
        creator.alive = match presence(creator.id) {
            Presence::Alive => Some(true),
            Presence::Gone => Some(false),
            Presence::Unseen => None,
        };
    }
    let last = one.creators.iter().rev().find(|creator| creator.alive == Some(true));
    let top = last.map_or(one.id(), |creator| creator.id);
    let Ok(Some(dir)) = proc.identified(top) else { return };
    let above: Vec<Creator> = proc.ancestors(&dir).take(64).map(|dir| parent(&dir, rules)).collect();
    let known: Vec<ProcessId> = one.creators.iter().map(|creator| creator.id).collect();
    one.creators.extend(above.into_iter().filter(|creator| !known.contains(&creator.id)));
}

fn parent(dir: &ProcessDir, rules: &Rules) -> Creator {
    let image = dir.image();
    let program = Some(rules.title(&image)).filter(|name| !name.is_empty());
    let program = program.or_else(|| redact::argv(&image.argv).into_iter().next());
    let (uid, alive) = (dir.uid().ok(), Some(true));
    Creator { id: dir.id(), program, uid, alive, exited: None, witnessed: false }
}

/// The store, from the daemon or from its file. What cannot be read is said.
fn past(places: &Places, client: &Client, all: &mut Explanation) -> History {
    let query = HistoryQuery { boot_id: boot_id().ok(), never_judged: true, ..HistoryQuery::default() };
    let asked = if all.asked_daemon { client.history(query.clone()).ok() } else { None };
    match asked.map_or_else(|| store::history::history(places.state_dir(), &query), Ok) {
        Ok(history) => history,
        // Where no store is asked for by name and none is there, nothing was ever judged.
        Err(store::StoreError::Absent(_)) if places.state_dir.is_none() => History::default(),
        Err(error) => {
            all.blind.push(format!("its store: {error}"));
            History::default()
        }
    }
}

/// Whether the process with this id is meant.
fn is_past(asked: &Asked, id: &str) -> bool {
    matches!(Asked::from(id), Asked::Id(id) if asked.is(id))
}

/// What ended or was judged and matches, in the order of the verdicts and ends.
fn ended(asked: &Asked, history: History) -> Vec<PastOrphan> {
    let is_meant = |one: &PastOrphan| asked.names(&one.name) || is_past(asked, &one.id);
    let History { orphans, unproven, never_judged, .. } = history;
    let mut all: Vec<PastOrphan> =
        orphans.into_iter().chain(unproven).chain(never_judged).filter(is_meant).collect();
    all.sort_by_key(|one| one.judged);
    all.split_off(all.len().saturating_sub(ENDED))
}

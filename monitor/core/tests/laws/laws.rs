//! The laws, checked on the log of a settled world. Each violation is a sentence; no sentence, no violation.
//!
//! The checker knows the engine by its effects only and the world by [`Truth`](crate::truth::Truth) only.

use std::{collections::BTreeSet, time::Duration};

use orphand_core::model::{BootTime, Class, Evidence, Mode, Notice, ProcessId, ServerView};

use crate::{
    host::Host,
    leftovers::leftovers,
    order::{agents, order},
    truth::{Service, Standing},
    uses::UNASKED,
};

/// Times closer to a deadline than this are nobody's fault.
const MARGIN: Duration = Duration::from_secs(1);
/// What the system calls of one launch take at most.
const SYSTEM_CALLS: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Orphan,
    /// It is none: never told.
    None,
    Open,
}

/// All violations in a settled world.
pub fn violations(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(host.log.broken.iter().cloned());
    found.extend(shots(host));
    found.extend(verdicts(host));
    found.extend(counted(host));
    found.extend(judged_once(host));
    found.extend(ended(host));
    found.extend([order(host), agents(host), leftovers(host)].concat());
    found
}

/// No signal to a process that is not part of an unguarded orphan, or that is not who was meant.
pub fn shots(host: &Host) -> Vec<String> {
    let mut found: Vec<String> = host
        .log
        .shots
        .iter()
        .filter_map(|s| Some(format!("{:?} to {} at {:?}: {}", s.signal, s.meant, s.at, s.wrong.as_ref()?)))
        .collect();
    if host.policy.mode == Mode::Observe && !host.log.shots.is_empty() {
        found.push("a signal in observe mode".to_owned());
    }
    found
}

/// Signals to what was there at the first start, and whose owner nobody saw exit; or to all that was there.
pub fn shots_at_found(host: &Host, all: bool) -> Vec<String> {
    let (kernel, since) = (&host.kernel, host.truth.since);
    let died_since = |hand: &ProcessId| {
        let died = kernel.history.get(hand).and_then(|process| process.died);
        died.is_some_and(|(at, _)| at >= since)
    };
    let is_found =
        |s: &Service| BootTime::of_ticks(s.head().start) < since && (all || !s.hands().any(died_since));
    let of = |hit| host.truth.services.iter().filter(move |s| kernel.descends(hit, s.head()));
    let hits = host.log.shots.iter().filter_map(|shot| shot.hit);
    hits.filter(|hit| of(*hit).next().is_some() && of(*hit).all(is_found))
        .map(|hit| hit.to_string())
        .collect()
}

/// Nothing was called an orphan that was none at that moment, whatever became of it.
pub fn verdicts(host: &Host) -> Vec<String> {
    host.log.wrong_verdicts.iter().map(|(at, why)| format!("{at:?}: {why}")).collect()
}

/// What must be said of `service`.
pub fn expect(host: &Host, service: &Service) -> Expect {
    let kernel = &host.kernel;
    // Nor is what it was found as where the first look failed.
    if host.truth.partial && (host.manners.stumbles > 0 || !plain(host, service)) {
        return Expect::Open;
    }
    if blurred(host, service) || host.manners.blind {
        return match host.truth.standing(kernel, service) {
            // Nobody can use it any more: whoever started it, it seems to be the orphan of a link whose exec was lost.
            Standing::Owned if host.truth.is_silent(kernel, service) => Expect::Open,
            Standing::Unowned
                if host.truth.is_nameless(kernel, service) && host.truth.is_silent(kernel, service) =>
            {
                Expect::Open
            }
            Standing::Unowned | Standing::Owned => Expect::None,
            _ => Expect::Open,
        };
    }
    match host.truth.standing(kernel, service) {
        // Nobody knows what made it, and nobody can use it any more.
        Standing::Unowned
            if host.truth.is_nameless(kernel, service) && host.truth.is_silent(kernel, service) =>
        {
            Expect::Open
        }
        Standing::Unowned => Expect::None,
        _ if is_veiled(host, service) => Expect::Open,
        // Whoever ended before the daemon heard of it may have gone into the background unseen.
        _ if unheard(host, service) => Expect::Open,
        // The same where only a part of its history was seen.
        Standing::Owned if host.truth.partial && host.truth.is_silent(kernel, service) => Expect::Open,
        // What was judged then was compared with the truth of that moment.
        Standing::Owned if host.truth.was_abandoned(kernel, service) => Expect::Open,
        Standing::Owned => Expect::None,
        Standing::Unclear => Expect::Open,
        Standing::Ownerless(_) if host.truth.is_entangled(kernel, service) => Expect::Open,
        // A server that made the wire of another one looks like a host if its exec was lost, and a chain with a lost link may be nobody's.
        Standing::Ownerless(_) if host.truth.lossy && (service.bridged || service.chain.len() > 1) => {
            Expect::Open
        }
        // A gateway that listens serves those who call it for a moment, too.
        Standing::Ownerless(_) if service.bridged && listens(host, service) => Expect::Open,
        Standing::Ownerless(since) => {
            let verdict = since + host.policy.grace;
            // Nobody can tell who has it but those that are seen: the server itself, for instance, or a bridge the wire behind it.
            let open = |own| kernel.opposite(own).is_some_and(|end| kernel.is_open(end));
            let unseen = host.manners.passless && (service.bridged || service.wires.into_iter().any(open));
            match host.truth.ended(kernel, service) {
                Some(at) if at + MARGIN < verdict && !was_shot(host, service) => Expect::None,
                // It was used for a time, may be.
                Some(_) if !was_shot(host, service) => Expect::Open,
                // What it left in the chain is gone, helpers are there: the words do not say whose they are.
                _ if !was_shot(host, service) && (unseen || chain_ended(host, service)) => Expect::Open,
                _ => Expect::Orphan,
            }
        }
    }
}

/// A go-between of a host that no rule knows has ended before the kernel side heard of anybody.
fn is_veiled(host: &Host, service: &Service) -> bool {
    service.go_between.is_some() && !host.truth.agents.contains(&service.maker)
}

fn was_shot(host: &Host, service: &Service) -> bool {
    let is_member = |hit| host.truth.is_member(&host.kernel, hit, service.head());
    host.log.shots.iter().filter_map(|shot| shot.hit).any(is_member)
}

fn listens(host: &Host, service: &Service) -> bool {
    let listens = |link: &ProcessId| host.kernel.get(*link).is_some_and(|process| process.doings.listens);
    service.chain.iter().any(listens)
}

fn chain_ended(host: &Host, service: &Service) -> bool {
    !service.chain.iter().any(|id| host.kernel.alive(*id))
}

/// Whether it was started by its owner itself, which is not below another server: what even a look at /proc
/// can tell.
fn plain(host: &Host, service: &Service) -> bool {
    let below = |h: &ProcessId| *h != service.head() && host.kernel.descends(service.head(), *h);
    // The link that shows who started a chain may be the one that was lost; a rule knows its agents anyway.
    let shown = !host.truth.lossy || service.chain.len() == 1 || host.truth.agents.contains(&service.maker);
    // What has closed one of its streams before anybody looked does not look like a server; of one that has moved them only the
    // one that it reads is found.
    shown
        && !service.mute
        && !service.moved
        && service.owner == Some(service.maker)
        && !host.truth.heads.iter().any(below)
}

/// Whether its history was partly unseen: something of its line ended before the daemon looked, or while
/// records were lost.
pub fn blurred(host: &Host, service: &Service) -> bool {
    if service.found_ownerless || service.found_silent {
        return true;
    }
    let makers = service.owner.iter().chain([&service.maker]).chain(&service.go_between);
    let line = service.chain.iter().chain(makers).chain(&service.patrons);
    let deaths: Vec<BootTime> =
        line.filter_map(|id| host.kernel.history.get(id)?.died).map(|(at, _)| at).collect();
    let looks = host.log.first_look.zip(host.log.last_look);
    let Some((first, last)) = looks else { return true };
    let unseen =
        |at: BootTime| at <= first || host.log.first_loss.is_some_and(|l| l <= at + MARGIN && at <= last);
    deaths.into_iter().any(unseen)
}

/// Whether the daemon knows it from /proc only, or may.
fn unsure(host: &Host, service: &Service) -> bool {
    let early = host.kernel.history.get(&service.head()).map(|p| p.born) < host.log.first_look;
    early || host.log.first_loss.is_some() || blurred(host, service)
}

fn id_of(view: &ServerView) -> ProcessId {
    let (pid, start) = view.id.split_once('@').unwrap_or_default();
    ProcessId::new(pid.parse().unwrap_or_default(), start.parse().unwrap_or_default())
}

/// Whether a notice is about `service`.
pub fn is_about(view: &ServerView, service: &Service) -> bool {
    let leaf = service.leaf();
    service.chain.contains(&id_of(view))
        || view.processes.iter().any(|p| ProcessId::new(p.pid, p.start) == leaf)
}

/// The server a notice is about.
pub fn server_of(notice: &Notice) -> Option<&ServerView> {
    match notice {
        // An agent that was left behind is no server.
        Notice::OrphanDetected { class: Class::Agent, .. }
        | Notice::OrphanSpared { class: Class::Agent, .. }
        | Notice::OrphanExited { class: Class::Agent, .. }
        | Notice::OrphanReaped { class: Class::Agent, .. } => None,
        Notice::ServerStarted { server, .. }
        | Notice::ServerExited { server, .. }
        | Notice::ServerDetached { server, .. }
        | Notice::ServerDuplicated { server, .. }
        | Notice::OrphanSuspected { server, .. }
        | Notice::OrphanCleared { server, .. }
        | Notice::OrphanDetected { server, .. }
        | Notice::OrphanUnproven { server, .. }
        | Notice::OrphanSpared { server, .. }
        | Notice::OrphanReaped { server, .. }
        | Notice::ReapFailed { server, .. }
        | Notice::OrphanExited { server, .. } => Some(server),
        _ => None,
    }
}

/// The notices about a service, oldest first.
pub fn about<'a>(host: &'a Host, service: &'a Service) -> Vec<&'a Notice> {
    let all = host.log.notices().map(|(_, _, n)| n);
    all.filter(|n| server_of(n).is_some_and(|v| is_about(v, service))).collect()
}

/// A verdict on evidence that never leads to a signal, as allowed where the past was not seen.
pub fn weak(notice: &Notice) -> bool {
    matches!(notice, Notice::OrphanDetected { evidence, .. }
        if evidence.contains(&Evidence::NoOwner))
}

/// The event's name in the stream, with what decides it.
pub fn name(notice: &Notice) -> String {
    let event = match serde_json::to_value(notice) {
        Ok(json) => json["event"].as_str().unwrap_or_default().to_owned(),
        Err(e) => e.to_string(),
    };
    match notice {
        Notice::OrphanUnproven { doubts, .. } => format!("{event} {doubts:?}"),
        Notice::OrphanDetected { guards, .. } | Notice::OrphanSpared { guards, .. } => {
            format!("{event} {guards:?}")
        }
        Notice::OrphanCleared { reason, .. } => format!("{event} {reason}"),
        _ => event,
    }
}

/// Every true orphan is judged exactly once, and nothing else is.
pub fn judged_once(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    for service in &host.truth.services {
        let notices = about(host, service);
        let verdicts: Vec<&&Notice> =
            notices.iter().filter(|n| matches!(n, Notice::OrphanDetected { .. })).collect();
        let head = service.head();
        let expected = expect(host, service);
        let count = verdicts.len();
        let unsure = unsure(host, service) || host.manners.blind;
        let excused = unsure && verdicts.iter().all(|n| weak(n));
        let again = notices.iter().filter(|n| takes_back(n)).count();
        // A chain with a lost link may have fallen into pieces.
        let pieces = if host.truth.lossy { service.chain.len() } else { 1 };
        let wrong = match expected {
            Expect::Orphan => count == 0 || count > pieces + again,
            Expect::None => count != 0 && !excused,
            Expect::Open => count > pieces + again,
        };
        if wrong {
            let told: Vec<String> = notices.iter().map(|n| name(n)).collect();
            found.push(format!("server {head} (expected {expected:?}) was judged {count} times: {told:?}"));
        }
    }
    found
}

/// After this, what was called an orphan is none for the time being.
fn takes_back(notice: &Notice) -> bool {
    match notice {
        Notice::OrphanUnproven { .. } => true,
        Notice::OrphanCleared { reason, .. } => reason == "owner_found",
        _ => false,
    }
}

/// What counts as an orphan is what was called so last; what is unproven never counts.
pub fn counted(host: &Host) -> Vec<String> {
    let mut orphans: BTreeSet<&str> = BTreeSet::new();
    for (_, _, notice) in host.log.notices() {
        let Some(view) = server_of(notice) else { continue };
        if let Notice::OrphanDetected { .. } = notice {
            orphans.insert(&view.id);
        } else if takes_back(notice) || is_end(notice) {
            orphans.remove(view.id.as_str());
        }
    }
    let count = host.core.orphans();
    let wrong = usize::try_from(count) != Ok(orphans.len());
    wrong.then(|| format!("{count} orphans are counted, {orphans:?} were told")).into_iter().collect()
}

/// Whether the engine called it an orphan, on whatever evidence.
pub fn called(host: &Host, service: &Service) -> bool {
    about(host, service).iter().any(|n| matches!(n, Notice::OrphanDetected { .. }))
}

/// Whether the engine called it an orphan.
pub fn orphan(host: &Host, service: &Service) -> bool {
    about(host, service).iter().any(|n| matches!(n, Notice::OrphanDetected { .. }) && !weak(n))
}

/// Every unguarded orphan is ended, every server's end is told once, in the word that fits.
pub fn ended(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    let able = host.policy.mode == Mode::Enforce && !host.manners.refuses && !host.manners.blind;
    for service in &host.truth.services {
        let head = service.head();
        let orphan = expect(host, service) == Expect::Orphan;
        // A chain with a lost link may have fallen into pieces.
        let pieces = host.truth.lossy && service.chain.len() > 1;
        let guarded =
            !host.truth.bars(&host.kernel, service).is_empty() || host.truth.shelters(&host.kernel, service);
        let free = !guarded && !service.bridged && !pieces;
        let lives = host.truth.lives(&host.kernel, service);
        if able && orphan && free && lives && !unheard(host, service) {
            // A fork of it that is open to others when the rest has ended is a daemon that it let go.
            let rest = host.truth.parts(&host.kernel, service).into_iter();
            let rest = rest.filter(|p| service.chain.contains(&p.id) || !p.doings.listens);
            let rest: Vec<String> = rest.map(|p| p.id.to_string()).collect();
            if !rest.is_empty() {
                found.push(format!("the orphan {head} was left alive: {rest:?}"));
            }
        }
        let nested = host.truth.agents.iter().any(|a| host.kernel.descends(*a, head));
        let ends = about(host, service).into_iter().filter(|n| is_end(n)).count();
        // One behind a bridge that was there before is a part of what is told of.
        let is_it = |view: &ServerView| service.chain.contains(&id_of(view));
        let started = about(host, service)
            .iter()
            .any(|n| matches!(n, Notice::ServerStarted { server, .. } if is_it(server)));
        // Of a chain that was broken before anybody looked, or whose maker nobody could ask, the pieces count as servers.
        // Nor does who sees nothing see what it let go.
        let whole = !unsure(host, service) && !host.manners.blind;
        if started
            && whole
            && !nested
            && !service.over
            && !is_veiled(host, service)
            && !unheard(host, service)
            && !host.truth.shelters(&host.kernel, service)
        {
            let wrong = if lives { ends != 0 } else { ends != 1 };
            if wrong {
                let told: Vec<String> = about(host, service).iter().map(|n| name(n)).collect();
                found
                    .push(format!("server {head} (alive: {lives}): its end was told {ends} times: {told:?}"));
            }
        }
    }
    found
}

/// Whether its owner, which no rule knows, ended before the daemon could ask who that was: then nobody knows
/// whose user's it is, and the engine is right to leave it alone.
fn unheard(host: &Host, service: &Service) -> bool {
    let born = host.kernel.history.get(&service.head()).map(|p| p.born);
    let maker = Some(service.maker).filter(|m| !host.truth.agents.contains(m));
    let died = maker.and_then(|m| host.kernel.history.get(&m)?.died).map(|(at, _)| at);
    let hasty = born.zip(died).is_some_and(|(born, died)| {
        // Of what was there before, who that was is asked a moment after the start.
        let found = host.truth.since + UNASKED + Duration::from_millis(host.manners.late.into());
        died < if born < host.truth.since { found } else { born + host.manners.lag + SYSTEM_CALLS }
    });
    hasty || host.truth.unheard.contains(&service.maker)
}

fn is_end(notice: &Notice) -> bool {
    match notice {
        Notice::ServerExited { .. } | Notice::OrphanReaped { .. } | Notice::OrphanExited { .. } => true,
        Notice::OrphanCleared { reason, .. } => reason == "exited",
        _ => false,
    }
}

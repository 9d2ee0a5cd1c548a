//! Evidence, doubts and guards: what each says, and what would change it.

use serde::Serialize;
use serde_json::{Value, json};

use orphand_core::model::{Doubt, Evidence, Guard};

/// A reason in two sentences: what it says, and what would change it.
pub(super) type Reason = (&'static str, &'static str);

pub(super) const fn evidence_sentence(evidence: Evidence) -> Reason {
    match evidence {
        Evidence::OwnerExited => (
            "Its owner has exited.",
            "Nothing undoes that, unless a living process turns out to be its owner.",
        ),
        Evidence::StdinHangup => (
            "Nobody outside holds the other end of its standard input.",
            "This changes if somebody gets an end of that pipe or socket.",
        ),
        Evidence::StaleInvocation => {
            ("Its unit has been started again since it began.", "Nothing undoes that.")
        }
        Evidence::UnitStopped => ("Its unit is stopped.", "This changes if the unit is started again."),
        Evidence::SessionExpired => (
            "The session that it was started for has expired.",
            "This changes if the key of the session comes back.",
        ),
        Evidence::Released => ("Its manager has released it.", "This changes if it is used."),
        Evidence::IdleDuplicate => (
            "It has done nothing for the time of idle_duplicates, and a newer server of the same identity is in use.",
            "This changes if it does anything, or the newer one ends.",
        ),
        Evidence::SpawnerThreadExited => {
            ("The thread of its owner that started it has ended.", "Nothing undoes that.")
        }
        Evidence::NoOwner => (
            "It was found without an owner, which alone proves nothing.",
            "A daemon that runs when servers start knows their owners.",
        ),
        Evidence::Abandoned => (
            "Its owner lives and has abandoned it.",
            "This changes if it does something again, or somebody speaks to it.",
        ),
    }
}

pub(super) const fn doubt_sentence(doubt: Doubt) -> Reason {
    match doubt {
        Doubt::WireHeld => (
            "Another process may speak to its standard input.",
            "This ends when that process closes its end, or exits.",
        ),
        Doubt::StdoutRead => (
            "Another process may read its standard output.",
            "This ends when that process closes its end, or exits.",
        ),
        Doubt::WireUnknown => {
            ("It is not known who holds its wires.", "This ends when a look sees all of their ends.")
        }
        Doubt::OwnerUnknown => (
            "Its owner is not known, and nothing else proves that it was left behind.",
            "This ends if its owner is found, or its unit is stopped.",
        ),
        Doubt::Clients => (
            "A client may be connected to it, or was shortly before.",
            "This ends a minute after the last client over TCP has gone.",
        ),
        Doubt::Traced => ("A debugger traces it.", "This ends when the debugger lets it go."),
        Doubt::DependedOn => (
            "Something that is no part of it would end or stop with it.",
            "This ends when what depends on it has gone.",
        ),
        Doubt::OnlyNamed => (
            "Only its name says that it is a server.",
            "A message of the protocol, settings that declare it, or a rule would show it.",
        ),
        Doubt::Active => (
            "It did something a moment ago, or a call of it may be under way.",
            "This ends when it has been at rest for the time of abandoned_grace, and waits for its next request alone.",
        ),
        Doubt::Working => (
            "A tool that it started is at work.",
            "This ends with the tool, at the latest after the time of work_grace.",
        ),
    }
}

pub(super) const fn guard_sentence(guard: Guard) -> Reason {
    match guard {
        Guard::ExemptRule => {
            ("A rule of the configuration exempts it.", "Take the rule away, then: sudo orphand reload")
        }
        Guard::OptedOut => (
            "ORPHAND_OPT_OUT=1 is in its environment, or its environment cannot be read.",
            "Start it without that variable.",
        ),
        Guard::Multiplexer => {
            ("A terminal multiplexer lives in it.", "This ends when the multiplexer has exited.")
        }
        Guard::OtherUid => (
            "It runs as another user than its owner.",
            "`orphand run --other-uids` allows orphand to end it.",
        ),
        Guard::LiveAgentBelow => {
            ("An agent that lives is below it.", "This ends when that agent has exited.")
        }
        Guard::OwnUnit => (
            "It runs in a unit that is active, and may be what the unit is for.",
            "This ends when the unit is stopped: systemctl stop UNIT",
        ),
        Guard::Observe => (
            "orphand was told to observe only.",
            "orphand mode says who decided that; a person may end it: sudo orphand reap",
        ),
        Guard::Found => (
            "It was there before the first start of orphand, so nobody saw how it was left behind.",
            "A person ends it: sudo orphand reap. Or found = \"end\" in the configuration.",
        ),
        Guard::Container => (
            "It works in a container, which a signal to it would not end.",
            "Name the engine of the container in [containers], or stop the container.",
        ),
    }
}

fn list<T: Copy>(reasons: &[T], sentence: fn(T) -> Reason) -> Vec<String> {
    reasons.iter().map(|one| sentence(*one)).map(|(says, changes)| format!("{says} {changes}")).collect()
}

fn fields<T: Copy + Serialize>(reasons: &[T], sentence: fn(T) -> Reason) -> Vec<Value> {
    let told = reasons.iter().map(|one| (one, sentence(*one)));
    told.map(|(name, (says, changes))| json!({ "name": name, "says": says, "changes": changes })).collect()
}

pub(super) fn evidence(all: &[Evidence]) -> Vec<String> {
    list(all, evidence_sentence)
}

pub(super) fn doubts(all: &[Doubt]) -> Vec<String> {
    list(all, doubt_sentence)
}

pub(super) fn guards(all: &[Guard]) -> Vec<String> {
    list(all, guard_sentence)
}

pub(super) fn evidence_fields(all: &[Evidence]) -> Vec<Value> {
    fields(all, evidence_sentence)
}

pub(super) fn doubt_fields(all: &[Doubt]) -> Vec<Value> {
    fields(all, doubt_sentence)
}

pub(super) fn guard_fields(all: &[Guard]) -> Vec<Value> {
    fields(all, guard_sentence)
}

//! Properties that hold for every sequence of events.

use proptest::prelude::*;

use super::*;

fn process() -> impl Strategy<Value = ProcessId> {
    (2u32..8).prop_map(id)
}

fn signal() -> impl Strategy<Value = Signal> {
    prop_oneof![Just(Signal::Term), Just(Signal::Kill)]
}

fn any_finding() -> impl Strategy<Value = Finding> {
    let doubts = prop::collection::vec(Just(Doubt::WireHeld), 0..2);
    let guards = prop::collection::vec(prop_oneof![Just(Guard::Observe), Just(Guard::OptedOut)], 0..2);
    (prop::bool::weighted(0.1), prop::bool::weighted(0.1), doubts, guards).prop_map(
        |(has_owner, too_early, doubts, guards)| Finding {
            has_owner,
            too_early,
            doubts,
            guards,
            ..finding()
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let refused =
        (process(), signal(), any::<bool>(), any::<bool>()).prop_map(|(process, signal, retry, last)| {
            let message = String::new();
            let error = if retry {
                SignalError::Unsure { message }
            } else {
                SignalError::System { errno: 1, message }
            };
            Event::SignalRefused { process, signal, error, last }
        });
    prop_oneof![
        1 => Just(Event::Suspected { reason: Reason::OwnerExited, since: at(0), deadline: at(5000) }),
        1 => Just(Event::Suspected { reason: Reason::Released(By::Session), since: at(0), deadline: at(5000) }),
        1 => Just(Event::OwnerFound),
        1 => Just(Event::SessionLives),
        1 => any::<bool>().prop_map(|anyway| Event::Asked { anyway }),
        3 => Just(Event::DeadlineReached),
        8 => any_finding().prop_map(inspected),
        1 => Just(Event::Inconclusive { again: secs(1) }),
        8 => Just(Event::Proceed),
        3 => refused,
        1 => process().prop_map(|process| Event::NewChild { process }),
        1 => Just(Event::RulesChanged),
        1 => Just(Event::OtherEnded),
        1 => Just(Event::Ended),
    ]
}

/// What the world says at one step: the owner, the targets, what was not seen.
type Around = (u8, Vec<ProcessId>, BTreeSet<ProcessId>, bool);

fn around() -> impl Strategy<Value = Around> {
    let targets = prop::collection::btree_set(process(), 0..4).prop_map(|set| set.into_iter().collect());
    (0u8..3, targets, prop::collection::btree_set(process(), 0..2), prop::bool::weighted(0.2))
}

fn owner(number: u8) -> Owner {
    [Owner::Unknown, Owner::Alive, Owner::Exited(at(1))][usize::from(number)]
}

proptest! {
    /// A signal is sent only while the server is being ended, only to a target that was seen, and never to a process
    /// for which the system refused it for good. No deadline is in the past.
    #[test]
    fn no_step_goes_too_far(
        steps in prop::collection::vec((event(), around()), 1..60),
    ) {
        let mut phase = Phase::Clear;
        let mut refused = BTreeSet::new();
        for (number, (event, (who, targets, unseen, doubtful))) in steps.into_iter().enumerate() {
            let main_process = targets.last().copied();
            let now = at(number as u64);
            let facts =
                Facts { now, owner: owner(who), doubtful, targets, unseen: &unseen, main_process, ..facts() };
            match &event {
                Event::SignalRefused { process, error: SignalError::System { .. }, .. }
                    if phase.orphan().is_some() =>
                {
                    refused.insert(*process);
                }
                // A person asks, or another case of the same server begins.
                Event::Asked { .. } | Event::Suspected { .. } | Event::OwnerFound | Event::Ended => refused.clear(),
                _ => {}
            }
            let may_begin = matches!(event, Event::Proceed) && phase.stage() == Some(Stage::Spared);
            let guarded = phase.orphan().is_some_and(|verdict| !verdict.guards.is_empty());
            let was_terminating = phase.is_terminating();
            let (next, actions) = step(phase, event.clone(), &facts);
            for action in &actions {
                match action {
                    Action::Signal { process, .. } => {
                        prop_assert!(was_terminating || (may_begin && !guarded), "{event:?}");
                        prop_assert!(next.is_terminating() || next.stage() == Some(Stage::Failed));
                        prop_assert!(facts.targets.contains(process) && !unseen.contains(process));
                        prop_assert!(!refused.contains(process), "{process} was refused");
                    }
                    Action::SetDeadline(Some(deadline)) => prop_assert!(*deadline >= now, "{event:?}"),
                    _ => {}
                }
            }
            phase = next;
        }
    }
}

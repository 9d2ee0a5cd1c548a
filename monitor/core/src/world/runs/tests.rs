//! Tests of runs: numbers are given once, and the number of remembered runs is bounded for each user.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::model::{KEYS_OF_USER, RUNS_OF_ALL, RUNS_OF_USER, Unit, UnitState};

/// What happens to the runs of a few agents and units.
#[derive(Clone, Debug)]
enum Act {
    /// An agent starts: in a unit under an invocation, witnessed or found later, or outside of units.
    Start { unit: Option<(u8, u8)>, main: u8, witnessed: bool },
    /// The last agent of a run exits.
    End(u8),
    /// The daemon is killed. The next daemon knows what was stored.
    Restart { same_boot: bool },
}

fn act() -> impl Strategy<Value = Act> {
    let unit = prop::option::of((0u8..3, 0u8..6));
    prop_oneof![
        8 => (unit, 0u8..12, any::<bool>())
            .prop_map(|(unit, main, witnessed)| Act::Start { unit, main, witnessed }),
        3 => any::<u8>().prop_map(Act::End),
        1 => any::<bool>().prop_map(|same_boot| Act::Restart { same_boot }),
    ]
}

fn facts((unit, invocation): (u8, u8), witnessed: bool) -> UnitFacts {
    let now = if witnessed { invocation.to_string() } else { "another".to_owned() };
    UnitFacts {
        unit: Unit { manager: String::new(), name: format!("{unit}.service") },
        invocation_id: Some(invocation.to_string()),
        state: UnitState::Active(now),
    }
}

proptest! {
    /// A number means one run for ever: one invocation of a unit, or one process; the numbers of a key have no gaps; an
    /// invocation that is over and that nobody counted gets none.
    #[test]
    fn a_number_is_given_once(acts in prop::collection::vec(act(), 0..120)) {
        let mut runs = Runs::default();
        let mut disk: BTreeMap<(RunKey, u64), Run> = BTreeMap::new();
        let mut boot = 0u64;
        // Whose each number is: an invocation, or a process of a boot.
        let mut owners: BTreeMap<(RunKey, u64), String> = BTreeMap::new();
        let mut counted: BTreeSet<(u8, u8)> = BTreeSet::new();
        for act in acts {
            match act {
                Act::Start { unit, main, witnessed } => {
                    let facts = unit.map(|unit| facts(unit, witnessed));
                    let main = ProcessId::new(u32::from(main) + 2, boot + u64::from(main));
                    let top = TopMost { name: "claude", uid: 0, main, unit: facts.as_ref(), witnessed };
                    let (account, run) = runs.account(&top);
                    if let Some(run) = run {
                        disk.insert((run.key.clone(), run.generation), run);
                    }
                    let known = unit.is_none_or(|u| witnessed || counted.contains(&u));
                    prop_assert_eq!(account.generation.is_some(), known);
                    if let Some(number) = account.run() {
                        counted.extend(unit);
                        let owner = unit.map_or(format!("{main} of boot {boot}"), |(_, i)| i.to_string());
                        let before = owners.entry(number.clone()).or_insert_with(|| owner.clone());
                        prop_assert_eq!(&*before, &owner);
                        let of_key = owners.keys().filter(|(key, _)| *key == number.0).count() as u64;
                        prop_assert!(number.1 >= 1 && number.1 <= of_key, "{} of {of_key}", number.1);
                    }
                }
                Act::End(which) => {
                    let alive = runs.alive();
                    if let Some((key, generation)) = alive.get(usize::from(which) % alive.len().max(1))
                        && let Some(run) = runs.end(key, *generation)
                    {
                        disk.insert((run.key.clone(), run.generation), run);
                    }
                }
                Act::Restart { same_boot } => {
                    boot += if same_boot { 0 } else { 1000 };
                    runs = Runs::default();
                    let remembered = disk.values().cloned();
                    let this_boot = |run: &Run| run.main.start >= boot;
                    runs.remember(
                        remembered.map(|run| RememberedRun { this_boot: this_boot(&run), run }).collect(),
                    );
                }
            }
        }
    }
}

/// An agent of a user that lives once.
fn lives_once(runs: &mut Runs, name: &str, uid: u32, start: u64) -> (RunKey, u64) {
    let main = ProcessId::new(7, start);
    let (account, _) = runs.account(&TopMost { name, uid, main, unit: None, witnessed: true });
    let (key, number) = account.run().unwrap();
    runs.end(&key, number);
    (key, number)
}

fn forget(runs: &mut Runs, held: &Held) -> Vec<RunKey> {
    if runs.is_crowded() { runs.forget(held) } else { Vec::new() }
}

#[test]
fn many_runs_are_bounded_and_the_last_number_stays() {
    let mut runs = Runs::default();
    for n in 1..=1000 {
        assert_eq!(lives_once(&mut runs, "a", 0, n).1, n);
        assert_eq!(forget(&mut runs, &Held::new()), []);
    }
    let kept = runs.by_key.values().map(BTreeMap::len).sum::<usize>();
    assert!((RUNS_OF_USER..=RUNS_OF_USER + 65).contains(&kept), "{kept}");
    assert_eq!(runs.over().count(), kept);
    assert_eq!(runs.report(&Held::new()).len(), 16);
}

/// A user with a new name each time loses its own, whatever many users it may be; the honest one, who came first,
/// nothing.
#[test]
fn a_user_with_many_names_loses_its_own() {
    for users in [1, 60_000] {
        let mut runs = Runs::default();
        let honest: Vec<_> = (1..=20).map(|n| lives_once(&mut runs, "claude", 1000, n)).collect();
        let mut forgotten = 0;
        for n in 0..20_000_u32 {
            let uid = 100_000 + n % users;
            lives_once(&mut runs, &format!("a{n}"), uid, 100 + u64::from(n));
            forgotten += forget(&mut runs, &Held::new()).len();
        }
        assert!(runs.over().count() <= RUNS_OF_ALL + 64, "{}", runs.over().count());
        assert_eq!(forgotten + runs.by_key.len(), 20_001);
        assert!(users > 1 || runs.by_key.len() <= KEYS_OF_USER + 65, "{}", runs.by_key.len());
        assert!(honest.iter().all(|(key, number)| runs.get(key, *number).is_some()));
        let told = runs.report(&Held::new());
        assert!(told.len() <= 16 + 8, "{}", told.len());
        assert_eq!(told.iter().filter(|run| run.user == 1000).count(), 16);
        assert_eq!(lives_once(&mut runs, "claude", 1000, 21).1, 21);
    }
}

#[test]
fn what_lives_is_never_forgotten_and_a_key_goes_as_a_whole() {
    let mut runs = Runs::default();
    let living = runs.account(&TopMost {
        name: "living",
        uid: 1,
        main: ProcessId::new(7, 1),
        unit: None,
        witnessed: true,
    });
    let living = living.0.run().unwrap();
    lives_once(&mut runs, "holder", 1, 2);
    let held = lives_once(&mut runs, "holder", 1, 3);
    let gone = [lives_once(&mut runs, "gone", 1, 4), lives_once(&mut runs, "gone", 1, 5)];
    let holds = Held::from([(held.0.clone(), BTreeSet::from([held.1]))]);
    let mut forgotten = Vec::new();
    for n in 0..500 {
        lives_once(&mut runs, &format!("a{n}"), 1, 100 + n);
        forgotten.extend(forget(&mut runs, &holds));
    }
    assert_eq!(runs.alive(), [living]);
    assert!(runs.get(&held.0, held.1).is_some());
    assert!(runs.report(&holds).iter().any(|run| run.run.agent == "holder"));
    assert!(forgotten.contains(&gone[0].0) && !forgotten.contains(&held.0));
    // Nothing of it is left, and it begins again.
    assert!(gone.iter().all(|(key, number)| runs.get(key, *number).is_none()));
    assert_eq!(lives_once(&mut runs, "gone", 1, 1000).1, 1);
}

/// Runs that systemd-run starts share one sequence of numbers. A run that is reported again is the same run.
#[test]
fn units_for_one_start_are_one_key() {
    let mut runs = Runs::default();
    let start = |runs: &mut Runs, number: u64| {
        let facts = UnitFacts {
            unit: Unit { manager: String::new(), name: format!("run-u{number}.service") },
            invocation_id: Some(number.to_string()),
            state: UnitState::Active(number.to_string()),
        };
        let main = ProcessId::new(7, number);
        runs.account(&TopMost { name: "claude", uid: 0, main, unit: Some(&facts), witnessed: true }).0
    };
    for number in 1..=5 {
        let account = start(&mut runs, number);
        assert_eq!(account.unit.as_deref(), Some("run-*.service"));
        assert_eq!(account.generation, Some(number));
    }
    assert_eq!(start(&mut runs, 3).generation, Some(3));
    assert_eq!(runs.by_key.len(), 1);
}

//! The laws on random stories.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::OnceLock,
};

use proptest::{prelude::*, test_runner::RngSeed};

use crate::{histories::Story, laws, replay, strategies, trace, world::World};

/// Stories for each law in an ordinary run; `ORPHAND_LAWS=N` makes it N. Six times as many for the law that matters.
const CASES: u32 = 100;

/// The seed of an ordinary run: a change must not be refused for what it did not bring.
const ORDINARY: u64 = 7;

/// `ORPHAND_LAWS_SEED=any` searches in other stories each time and says by which seed; `ORPHAND_LAWS_SEED=N` plays them again. A found
/// story becomes a scenario with a name: a file of seeds means nothing after the next change.
pub fn config() -> ProptestConfig {
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = *SEED.get_or_init(|| {
        let seed = match std::env::var("ORPHAND_LAWS_SEED").as_deref() {
            Ok("any") => RandomState::new().build_hasher().finish(),
            Ok(seed) => seed.parse().expect("ORPHAND_LAWS_SEED is a number, or any"),
            Err(_) => ORDINARY,
        };
        println!("ORPHAND_LAWS_SEED={seed} repeats these stories");
        seed
    });
    let cases =
        std::env::var("ORPHAND_LAWS").map_or(CASES, |cases| cases.parse().expect("ORPHAND_LAWS is a number"));
    let rng_seed = RngSeed::Fixed(seed);
    ProptestConfig { failure_persistence: None, rng_seed, cases, ..ProptestConfig::default() }
}

/// The same for the law that matters: more of them.
fn search() -> ProptestConfig {
    ProptestConfig { cases: 6 * config().cases, ..config() }
}

fn lawful(world: &World) -> Result<(), TestCaseError> {
    let violations = laws::violations(&world.host);
    if violations.is_empty() {
        return Ok(());
    }
    Err(broken(world, &violations.join("\n")))
}

/// What broke, with the trace of the story. The last one written is that of the shortest story.
fn broken(world: &World, what: &str) -> TestCaseError {
    let name = std::thread::current().name().unwrap_or("story").replace("::", "-");
    let recorded = match trace::write(&world.host, &name) {
        Ok(path) => format!("orphand replay {}", path.display()),
        Err(error) => format!("no trace: {error}"),
    };
    let transcript = world.host.log.transcript();
    TestCaseError::fail(format!(
        "{what}\n{recorded}\n{transcript}\nORPHAND_LAWS_SEED={:?}",
        config().rng_seed
    ))
}

proptest! {
    #![proptest_config(search())]

    /// No process that anybody outside uses is ever signalled, or part of something that is called an orphan; every true orphan
    /// is judged once and ended; what is unproven becomes an orphan when its last doubt has gone, and never counts as one before;
    /// everything is told in order. While the configuration says to look only, nothing is signalled, not even what was asked to
    /// end before; once it says to act, all that was left is ended.
    #[test]
    fn nobody_in_use_is_signalled_and_every_orphan_is_ended(story in strategies::any_story()) {
        lawful(&story.play(|_| ()))?;
    }
}

proptest! {
    #![proptest_config(config())]

    /// A daemon that is started for the first time on this host signals nothing that was there before, unless it saw its owner exit; one
    /// that does not know all that was before, nothing at all of it.
    #[test]
    fn what_was_there_first_is_left_to_a_person(story in strategies::late_story()) {
        for is_incomplete in [false, true] {
            let world = story.play_with_first_start(is_incomplete);
            let wrong = [laws::shots(&world.host), laws::shots_at_found(&world.host, is_incomplete)].concat();
            if !wrong.is_empty() {
                return Err(broken(&world, &format!("{wrong:?}")));
            }
        }
    }

    /// Who only looks touches nothing, and sees what who acts sees.
    #[test]
    fn observing_touches_nothing(story in strategies::story()) {
        let world = Story { observe: true, ..story }.play(|_| ());
        prop_assert!(world.host.log.shots.is_empty());
        lawful(&world)?;
    }

    /// A stream with losses and the repair ends with the same orphans as the stream without, as far as nothing
    /// died unseen. Who only looks does not change the world, so the two worlds are the same.
    #[test]
    fn losses_and_repair_end_with_the_same_orphans(story in strategies::lossy_story()) {
        let lossy = Story { observe: true, ..story };
        let with = lossy.play(|_| ());
        let without = Story { faults: Vec::new(), ..lossy.clone() }.play(|_| ());
        let services = with.host.truth.services.iter().zip(&without.host.truth.services);
        for (a, b) in services {
            // When the daemon reads decides which numbers are free again.
            prop_assume!(a.head() == b.head());
            let expected = laws::expect(&with.host, a);
            let comparable = expected != laws::Expect::Open && expected == laws::expect(&without.host, b);
            if comparable && laws::orphan(&with.host, a) != laws::orphan(&without.host, b) {
                return Err(broken(&with, &format!("{} is an orphan in one of the two only", a.head())));
            }
        }
    }

    /// A daemon that is restarted at any moment, any number of times, ends nothing that it would not have ended without, if that
    /// is in use: what began in the tick of the restart is new to the next daemon, which may know less of it, and whose verdict
    /// may be another. Who only looks does not change the world, so the two worlds are the same.
    #[test]
    fn a_restart_ends_nothing_more(story in strategies::story(), after in prop::collection::vec(any::<u8>(), 1..4)) {
        let story = Story { observe: true, ..story };
        let (with, without) = (story.play_with_restarts(&after), story.play(|_| ()));
        let services = with.host.truth.services.iter().zip(&without.host.truth.services);
        for (a, b) in services {
            // When the daemon reads decides which numbers are free again.
            prop_assume!(a.head() == b.head());
            let in_use = with.host.truth.user(&with.host.kernel, a).is_some();
            let in_use = in_use && laws::expect(&with.host, a) == laws::Expect::None;
            if laws::called(&with.host, a) && !laws::called(&without.host, b) && in_use {
                return Err(broken(&with, &format!("{} is an orphan after {after:?} only", a.head())));
            }
        }
        let acting = Story { observe: false, ..story }.play_with_restarts(&after);
        let wrong = laws::shots(&acting.host);
        if !wrong.is_empty() {
            return Err(broken(&acting, &format!("{wrong:?}")));
        }
    }

    /// The same inputs at the same times give the same effects.
    #[test]
    fn an_engine_is_deterministic(story in strategies::lossy_story()) {
        let world = story.play(|_| ());
        let again = story.play(|_| ());
        prop_assert_eq!(replay::effects(&world.host.log), replay::effects(&again.host.log));
        let replayed = replay::replay(&world.host, 1);
        prop_assert_eq!(replayed, replay::effects(&world.host.log));
    }

    /// A record told twice is a record told once.
    #[test]
    fn applying_twice_is_applying_once(story in strategies::story()) {
        let world = story.play(|_| ());
        let twice = replay::replay(&world.host, 2);
        let once = replay::effects(&world.host.log);
        if replay::visible(&twice) != replay::visible(&once) {
            return Err(broken(&world, "told twice it is not the same"));
        }
    }

    /// Whatever happens between the look and the signal: who gets it is who was meant.
    #[test]
    fn a_number_that_changed_hands_is_not_signalled(story in strategies::story()) {
        let world = story.play(|w| w.host.manners.treacherous = true);
        let hits: Vec<_> = world.host.log.shots.iter().filter(|s| s.hit.is_some_and(|h| h != s.meant)).collect();
        prop_assert!(hits.is_empty(), "{hits:?}");
    }

    /// Looks at servers take their time, and anything may happen meanwhile: nobody is judged by what is not so any more.
    #[test]
    fn answers_that_come_late_are_survived(story in strategies::any_story(), late in 1u16..1500) {
        lawful(&story.play(|w| w.host.manners.late = late))?;
    }

    /// Nobody who cannot look judges, and nobody who may not signal says that it did.
    #[test]
    fn blindness_and_refusal_are_survived(story in strategies::story(), blind in any::<bool>()) {
        let world = story.play(|w| {
            w.host.manners.blind = blind;
            w.host.manners.refuses = !blind;
        });
        prop_assert!(world.host.log.shots.iter().all(|s| s.hit.is_none()));
        lawful(&world)?;
    }
}

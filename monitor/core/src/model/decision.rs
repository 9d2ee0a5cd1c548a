//! What a person decided about the daemon's mode: a pause, or a mode that beats the configuration. Pure; the times are of the
//! wall clock, because a decision outlives a boot.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Mode;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decide", rename_all = "snake_case")]
pub enum Decision {
    /// End nothing from now on.
    Pause {
        /// For how many milliseconds; until [`Decision::Resume`] if absent.
        for_ms: Option<u64>,
    },
    Resume,
    /// This mode, whatever the configuration says; absent: what it says.
    Mode {
        mode: Option<Mode>,
    },
}

/// What persons have decided and what is in effect still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The pause, which beats everything else.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pause: Option<Pause>,
    /// The mode that beats the configuration.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chosen: Option<Chosen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who paused.
    pub by: String,
    /// When it ends by itself; absent if it does not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Who chose it.
    pub by: String,
    /// The mode.
    pub mode: Mode,
}

/// The answer to a decision: what is in effect now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Whether orphans are ended now.
    pub mode: Mode,
    /// What persons have decided.
    #[serde(flatten)]
    pub standing: Standing,
    /// Why the next daemon will not know of it; absent if it will.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_remembered: Option<String>,
}

impl Standing {
    pub fn decide(&mut self, decision: &Decision, by: &str, now: Timestamp) {
        let by = by.to_owned();
        match decision {
            Decision::Pause { for_ms } => {
                let until = for_ms.map(|millis| later(now, Duration::from_millis(millis)));
                self.pause = Some(Pause { by, until });
            }
            Decision::Resume => self.pause = None,
            Decision::Mode { mode } => self.chosen = mode.map(|mode| Chosen { by, mode }),
        }
    }

    /// Ends a pause whose time has come. Returns whether it did.
    pub fn end_pause(&mut self, now: Timestamp) -> bool {
        self.pause.take_if(|pause| pause.until.is_some_and(|until| until <= now)).is_some()
    }

    /// The mode in effect where the configuration says `configured`.
    pub fn mode(&self, configured: Mode) -> Mode {
        if self.pause.is_some() {
            return Mode::Observe;
        }
        self.chosen.as_ref().map_or(configured, |chosen| chosen.mode)
    }

    /// Who made the mode what it is; absent if the configuration did.
    pub fn by(&self) -> Option<&str> {
        let paused = self.pause.as_ref().map(|pause| &pause.by);
        paused.or_else(|| self.chosen.as_ref().map(|chosen| &chosen.by)).map(String::as_str)
    }
}

fn later(now: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::UNIX_EPOCH;

    fn pause(for_ms: Option<u64>) -> Decision {
        Decision::Pause { for_ms }
    }

    /// An earlier version wrote it into the state directory.
    #[test]
    fn the_earlier_word_of_a_mode_is_read() {
        let read = |word: &str| serde_json::from_str::<Mode>(word).unwrap();
        assert_eq!([read("\"reap\""), read("\"enforce\"")], [Mode::Enforce; 2]);
        assert_eq!(serde_json::to_string(&Mode::Enforce).unwrap(), "\"enforce\"");
    }

    #[test]
    fn a_pause_beats_a_mode_and_a_mode_beats_the_configuration() {
        let mut standing = Standing::default();
        for configured in [Mode::Enforce, Mode::Observe] {
            assert_eq!(standing.mode(configured), configured);
        }
        standing.decide(&Decision::Mode { mode: Some(Mode::Enforce) }, "alice", NOON);
        assert_eq!((standing.mode(Mode::Observe), standing.by()), (Mode::Enforce, Some("alice")));
        standing.decide(&pause(None), "bob", NOON);
        assert_eq!((standing.mode(Mode::Enforce), standing.by()), (Mode::Observe, Some("bob")));
        standing.decide(&Decision::Resume, "carol", NOON);
        assert_eq!((standing.mode(Mode::Observe), standing.by()), (Mode::Enforce, Some("alice")));
        standing.decide(&Decision::Mode { mode: None }, "carol", NOON);
        assert_eq!(standing, Standing::default());
    }

    #[test]
    fn a_pause_with_a_time_ends_by_itself() {
        let mut standing = Standing::default();
        standing.decide(&pause(Some(1_000)), "alice", NOON);
        assert!(!standing.end_pause(later(NOON, Duration::from_millis(999))));
        assert_eq!(standing.mode(Mode::Enforce), Mode::Observe);
        assert!(standing.end_pause(later(NOON, Duration::from_secs(1))));
        assert_eq!(standing.mode(Mode::Enforce), Mode::Enforce);
        assert!(!standing.end_pause(Timestamp::MAX), "there is none");
        standing.decide(&pause(None), "alice", NOON);
        assert!(!standing.end_pause(Timestamp::MAX), "it has no end");
        standing.decide(&pause(Some(u64::MAX)), "alice", NOON);
        assert_eq!(standing.pause.and_then(|pause| pause.until), Some(Timestamp::MAX));
    }
}

//! The states of a server: one word for each in every view.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What a server is judged to be. The worst comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody can use it any more.
    Orphan,
    /// It is being ended.
    Ending,
    /// An orphan that stays because of a guard.
    Kept,
    /// Its owner is gone, and somebody may still use it.
    Unproven,
    /// Its owner is gone, and its grace is not over.
    Suspect,
    /// No server: what an agent that has ended left behind besides.
    Leftover,
    /// Nothing speaks against it.
    #[default]
    Live,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no state: they are orphan, ending, kept, unproven, suspect, leftover, live")]
pub struct NoState(String);

impl State {
    /// From the worst to the best.
    pub const ALL: [Self; 7] =
        [Self::Orphan, Self::Ending, Self::Kept, Self::Unproven, Self::Suspect, Self::Leftover, Self::Live];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Orphan => "orphan",
            Self::Ending => "ending",
            Self::Kept => "kept",
            Self::Unproven => "unproven",
            Self::Suspect => "suspect",
            Self::Leftover => "leftover",
            Self::Live => "live",
        }
    }

    /// Whether it is an orphan, including one that stays because of a guard.
    pub const fn is_orphan(self) -> bool {
        matches!(self, Self::Orphan | Self::Ending | Self::Kept)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for State {
    type Err = NoState;

    fn from_str(word: &str) -> Result<Self, NoState> {
        Self::ALL.into_iter().find(|state| state.word() == word).ok_or_else(|| NoState(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for state in State::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        assert!(State::ALL.is_sorted());
        let error = "spared".parse::<State>().unwrap_err().to_string();
        assert!(State::ALL.iter().all(|state| error.contains(state.word())), "{error}");
    }
}

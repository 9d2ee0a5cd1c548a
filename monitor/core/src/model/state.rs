//! The states of a server: one word for each in every view.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// What a server is judged to be. The worst comes first.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", parse_err_ty = NoState, parse_err_fn = no_state)]
pub enum State {
    /// Nobody can use it any more.
    Orphan,
    /// It is being ended.
    Ending,
    /// An orphan that stays because of a guard.
    Kept,
    /// It was left behind, and somebody may still use it.
    Unproven,
    /// It was left behind, and its grace is not over.
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
    pub const ALL: &[Self] = Self::VARIANTS;

    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Whether it is an orphan, including one that stays because of a guard.
    pub const fn is_orphan(self) -> bool {
        matches!(self, Self::Orphan | Self::Ending | Self::Kept)
    }
}

fn no_state(word: &str) -> NoState {
    NoState(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for &state in State::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        assert!(State::ALL.is_sorted());
        let error = "spared".parse::<State>().unwrap_err().to_string();
        assert!(State::ALL.iter().all(|state| error.contains(state.word())), "{error}");
    }
}

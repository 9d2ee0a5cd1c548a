//! The exit codes of `orphand`. A contract with scripts.

use std::process::{ExitCode as Code, Termination};

/// The result of running `orphand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// 0: success.
    Done,
    /// 1: failure; one line on standard error says what, why, and what to do.
    Failed,
    /// 2: wrong usage. The command-line parser exits with it itself.
    Usage,
    /// 3: `ps --exit-code` found an orphan.
    Found,
    /// 4: nothing matched what was asked for.
    Unmatched,
}

impl ExitCode {
    /// The number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Found => 3,
            Self::Unmatched => 4,
        }
    }
}

impl Termination for ExitCode {
    fn report(self) -> Code {
        Code::from(self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_contract() {
        let all = [ExitCode::Done, ExitCode::Failed, ExitCode::Usage, ExitCode::Found, ExitCode::Unmatched];
        assert_eq!(all.map(ExitCode::number), [0, 1, 2, 3, 4]);
    }
}

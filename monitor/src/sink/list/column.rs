//! The columns of the list.

use clap::ValueEnum;

/// A column, and what the list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// The worst first, of those the largest.
    #[default]
    State,
    #[value(skip)]
    Server,
    #[value(skip)]
    Agent,
    #[value(skip)]
    Pid,
    #[value(skip)]
    Processes,
    /// Resident memory, the most first.
    #[value(name = "mem")]
    Memory,
    /// CPU time, the most first.
    Cpu,
    /// The oldest first.
    Age,
    /// What happens next.
    #[value(skip)]
    Next,
}

impl Column {
    /// From left to right.
    pub const ALL: [Self; 9] = [
        Self::State,
        Self::Server,
        Self::Agent,
        Self::Pid,
        Self::Processes,
        Self::Memory,
        Self::Cpu,
        Self::Age,
        Self::Next,
    ];

    /// Its heading for a table.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::State => "STATE",
            Self::Server => "SERVER",
            Self::Agent => "AGENT",
            Self::Pid => ">PID",
            Self::Processes => ">P",
            Self::Memory => ">MEM",
            Self::Cpu => ">CPU",
            Self::Age => ">AGE",
            Self::Next => "NEXT",
        }
    }

    pub fn heading(self) -> &'static str {
        self.title().trim_start_matches('>')
    }

    pub fn is_number(self) -> bool {
        self.title().starts_with('>')
    }

    /// The one `by` places to the right; it goes round.
    pub fn step(self, forward: bool) -> Self {
        let places = Self::ALL.len();
        let here = Self::ALL.iter().position(|one| *one == self).unwrap_or_default();
        let there = if forward { here + 1 } else { here + places - 1 } % places;
        Self::ALL.get(there).copied().unwrap_or_default()
    }
}

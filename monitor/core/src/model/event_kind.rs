//! The kinds of events, with their names. Names are a contract with users.

use super::Notice;

macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind {
            $(#[doc = concat!("`", $name, "`, [`Notice::", stringify!($kind), "`].")] $kind,)*
        }

        impl EventKind {
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }

        impl Notice {
            pub const fn kind(&self) -> EventKind {
                match self {
                    $(Self::$kind { .. } => EventKind::$kind,)*
                }
            }
        }
    };
}

// A notice that is missing here does not compile.
kinds! {
    Ready "ready",
    AgentStarted "agent_started",
    AgentExited "agent_exited",
    AgentsFolded "agents_folded",
    ServerStarted "server_started",
    ServerExited "server_exited",
    ServerDetached "server_detached",
    ServerDuplicated "server_duplicated",
    OrphanSuspected "orphan_suspected",
    OrphanCleared "orphan_cleared",
    OrphanDetected "orphan_detected",
    OrphanSpared "orphan_spared",
    OrphanReaped "orphan_reaped",
    ReapFailed "reap_failed",
    OrphanExited "orphan_exited",
    OrphanUnproven "orphan_unproven",
    LeftoversFound "leftovers_found",
    Lost "lost",
    Resynced "resynced",
    Alert "alert",
    AlertResolved "alert_resolved",
    Reconfigured "reconfigured",
    Stopping "stopping",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_that_serde_reads() {
        // serde lists the names that there are.
        let error = serde_json::from_str::<Notice>(r#"{"event":"?"}"#).unwrap_err().to_string();
        let mut names: Vec<_> = error.split('`').skip(1).step_by(2).filter(|name| *name != "?").collect();
        let mut known: Vec<_> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known, "{error}");
    }
}

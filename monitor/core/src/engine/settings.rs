//! The part of the configuration that the engine needs.

use std::time::Duration;

use crate::{
    model::{AlertRule, Found, Mode, Policy, ProcessId, SessionPolicy, abandoned_grace, work_grace},
    recognise::Rules,
};

/// The part of the configuration that the engine needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether orphans are ended or only reported.
    pub mode: Mode,
    /// Who decided the mode; absent if the configuration did.
    pub decided_by: Option<String>,
    /// Who ends what was there before the first start.
    pub found: Found,
    /// The time from the exit of the owner to the first inspection.
    pub grace: Duration,
    /// The time from the sign that a living owner abandoned a server to the first inspection.
    pub abandoned_grace: Duration,
    /// The time for which a tool below an orphan may go on with its work.
    pub work_grace: Duration,
    /// The time from the first SIGTERM to SIGKILL.
    pub term_timeout: Duration,
    /// Whether servers of another user than their owner's may be ended.
    pub other_uids: bool,
    /// The rules that recognise agents, servers and other programs.
    pub rules: Rules,
    /// Whether a process that no rule knows is a server if its first message is one of the protocol.
    pub recognise_protocol: bool,
    /// Thresholds that raise an alert.
    pub alerts: Vec<AlertRule>,
    /// How sessions are judged; absent if they are not.
    pub sessions: Option<SessionPolicy>,
    /// The container engines that are asked, by name.
    pub engines: Vec<String>,
    /// The daemon and its ancestors. They never get a signal.
    pub ourselves: Vec<ProcessId>,
}

impl Settings {
    /// The settings of a policy; an error if its rules are not TOML.
    pub fn new(policy: Policy, ourselves: Vec<ProcessId>) -> Result<Self, toml::de::Error> {
        let Policy {
            mode,
            decided_by,
            found,
            grace,
            abandoned_grace,
            work_grace,
            term_timeout,
            other_uids,
            rules,
            recognise_protocol,
            alerts,
            sessions,
            engines,
        } = policy;
        let rules = Rules::from_source(&rules)?;
        Ok(Self {
            mode,
            decided_by,
            found,
            grace,
            abandoned_grace,
            work_grace,
            term_timeout,
            other_uids,
            rules,
            recognise_protocol,
            alerts,
            sessions,
            engines,
            ourselves,
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Reap,
            decided_by: None,
            found: Found::default(),
            grace: Duration::from_secs(10),
            abandoned_grace: abandoned_grace(),
            work_grace: work_grace(),
            term_timeout: Duration::from_secs(5),
            other_uids: false,
            rules: Rules::builtin(),
            recognise_protocol: true,
            alerts: Vec::new(),
            sessions: None,
            engines: Vec::new(),
            ourselves: Vec::new(),
        }
    }
}

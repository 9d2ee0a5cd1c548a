//! The part of the configuration that the engine needs.

use std::time::Duration;

use crate::{
    model::{AlertRule, Found, Mode, Policy, ProcessId, SessionPolicy, abandoned_grace, work_grace},
    recognise::Rules,
};

/// The part of the configuration that the engine needs: each is what [`Policy`] says.
#[derive(Clone, Debug)]
pub struct Settings {
    pub mode: Mode,
    pub decided_by: Option<String>,
    pub found: Found,
    pub grace: Duration,
    pub abandoned_grace: Duration,
    pub work_grace: Duration,
    pub term_timeout: Duration,
    pub other_uids: bool,
    pub rules: Rules,
    pub recognise_protocol: bool,
    pub alerts: Vec<AlertRule>,
    pub sessions: Option<SessionPolicy>,
    pub engines: Vec<String>,
    /// The daemon and its ancestors. They never get a signal.
    pub ourselves: Vec<ProcessId>,
}

impl Settings {
    /// The settings of a policy; an error if its rules are not TOML.
    pub fn new(policy: Policy, ourselves: Vec<ProcessId>) -> Result<Self, toml::de::Error> {
        Ok(Self {
            mode: policy.mode,
            decided_by: policy.decided_by,
            found: policy.found,
            grace: policy.grace,
            abandoned_grace: policy.abandoned_grace,
            work_grace: policy.work_grace,
            term_timeout: policy.term_timeout,
            other_uids: policy.other_uids,
            rules: Rules::from_source(&policy.rules)?,
            recognise_protocol: policy.recognise_protocol,
            alerts: policy.alerts,
            sessions: policy.sessions,
            engines: policy.engines,
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

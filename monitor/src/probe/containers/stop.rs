//! The stop of a container, after a second look at it.
//!
//! A stop waits in the turn of its user, so it may be carried out seconds after the inspection that allowed it.
//! Somebody may have come meanwhile. Invariant: a container is stopped only if nothing has changed. First the host is
//! looked at once more; then the helper inspects the container at its engine, and has it stopped in the next request.

use std::time::Duration;

use super::{Found, Question, is_inside};
use crate::{host::with_deadline, probe::Probe};
use orphand_core::{
    model::{Answer, ContainerFacts},
    verdict::change,
};

/// How long a stop may take, beyond the time that the container has after SIGTERM. On a busy host Docker has taken 11 s.
const STOPPING: Duration = Duration::from_secs(15);

impl Probe {
    /// Has a container stopped, if nothing changed since it was `seen`.
    pub(in crate::probe) fn stop(&self, seen: &ContainerFacts, seconds: u64) -> Answer {
        let container = &seen.container;
        let changed = |why: &str| {
            tracing::info!("container {} is not stopped: {why}", container.id);
            Answer::Stopped { error: Some(why.to_owned()), changed: true }
        };
        let (this, look) = (self.clone(), seen.clone());
        if let Some(why) = with_deadline(move || this.change(&look)) {
            return changed(why);
        }
        let Some(first) = seen.first() else { return changed("it has no process") };
        let expected = Found {
            id: container.id.clone(),
            name: seen.name.clone(),
            image: seen.image.clone(),
            pid: first.process.pid,
            ..Found::default()
        };
        let question = Question::Stop { expected, seconds, monitored: seen.monitor.is_some() };
        let patience = Duration::from_secs(seconds) + STOPPING;
        match self.engines.ask(&container.engine, &question, patience) {
            Ok(true) => Answer::Stopped { error: None, changed: false },
            Ok(false) => changed("its engine tells something else of it"),
            Err(error) => Answer::Stopped { error: Some(error), changed: false },
        }
    }

    /// What has changed on the host since the container was `seen`. Nothing if its first process has ended: then its
    /// engine tells whether it runs.
    fn change(&self, seen: &ContainerFacts) -> Option<&'static str> {
        let unseen = "its processes cannot be read";
        let Some(first) = seen.first() else { return Some(unseen) };
        let first = match self.proc.identified(first.process) {
            Ok(Some(first)) if is_inside(&first, &seen.container.id) => first,
            Ok(Some(_)) => return Some("its first process has left it"),
            Ok(None) => return None,
            Err(_) => return Some(unseen),
        };
        // A process that begins to exit is no longer read.
        let Some((processes, inside)) = self.inside(&first) else {
            return matches!(self.proc.identified(first.id()), Ok(Some(_))).then_some(unseen);
        };
        // Who is attached to podman's monitor now.
        let attached = seen.monitor.and_then(|_| self.attached(seen.client));
        let monitor = attached.as_ref().map(|attached| attached.monitor);
        let shared = attached.is_some_and(|attached| attached.shared);
        // Last, because nothing else shows who attaches to it.
        let Some(others) = self.other_clients(&seen.container.engine, seen.client) else {
            return Some("who else is a client of its engine cannot be told");
        };
        let inside = Box::new(inside);
        change(seen, &ContainerFacts { processes, inside, others, monitor, shared, ..seen.clone() })
    }
}

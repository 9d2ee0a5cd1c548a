//! The CPU time that orphans use, for a counter: what each has used between two readings.
//!
//! A reading is an event that has it, or a scrape. What an orphan used before it was detected does not count, nor what it
//! used after the last reading. Bounded by the number of orphans alive.

use std::collections::BTreeMap;

use super::labels::Labels;

/// The orphans alive, by the id of the server.
#[derive(Debug, Default)]
pub(super) struct Processor(BTreeMap<String, Orphan>);

#[derive(Debug)]
struct Orphan {
    owner: Labels,
    user: u32,
    /// Its CPU time at the last reading, in milliseconds.
    cpu_ms: u64,
}

/// CPU time that was used since the last reading, and whose it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) owner: Labels,
    pub(super) user: u32,
    pub(super) cpu_ms: u64,
}

impl Processor {
    /// It is an orphan from now on, and has used so much before.
    pub(super) fn begin(&mut self, id: &str, owner: Labels, user: u32, cpu_ms: u64) {
        self.0.entry(id.to_owned()).or_insert(Orphan { owner, user, cpu_ms });
    }

    /// It has used so much by now.
    pub(super) fn read(&mut self, id: &str, cpu_ms: Option<u64>) -> Option<Used> {
        let orphan = self.0.get_mut(id)?;
        let used = cpu_ms?.saturating_sub(orphan.cpu_ms);
        // What a process has used that ended is not in the sum of those alive.
        orphan.cpu_ms = orphan.cpu_ms.max(cpu_ms?);
        Some(Used { owner: orphan.owner.clone(), user: orphan.user, cpu_ms: used })
    }

    /// It is no orphan any more.
    pub(super) fn end(&mut self, id: &str, cpu_ms: Option<u64>) -> Option<Used> {
        let used = self.read(id, cpu_ms);
        self.0.remove(id);
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_orphan_uses_counts_once() {
        let owner = vec![("agent", "claude".to_owned())];
        let used = |cpu_ms| Some(Used { owner: owner.clone(), user: 7, cpu_ms });
        let mut all = Processor::default();
        assert_eq!(all.read("1@2", Some(900)), None, "it is no orphan");
        all.begin("1@2", owner.clone(), 7, 500);
        assert_eq!(all.read("1@2", Some(900)), used(400));
        assert_eq!(all.read("1@2", Some(900)), used(0));
        assert_eq!(all.read("1@2", None), None, "not measured");
        // A child of it ended: less is no use.
        assert_eq!(all.read("1@2", Some(100)), used(0));
        // Told again, after it was unproven for a while: what it used counts on.
        all.begin("1@2", owner.clone(), 7, 950);
        assert_eq!(all.end("1@2", Some(1000)), used(100));
        assert_eq!(all.read("1@2", Some(2000)), None, "it has ended");
    }
}

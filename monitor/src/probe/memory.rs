//! Memory and CPU time of processes, from /proc.

use rustc_hash::FxHashMap;
use rustix::process::{Resource, getrlimit};

use super::Probe;
use crate::host::{Proc, Usage, UsageFile, with_deadline};
use orphand_core::model::{Memory, ProcessId};

/// Reads resident memory and CPU time of processes repeatedly. It keeps `stat` and `statm` of each
/// process open: a read from an open file costs a part of one that opens it.
///
/// Invariant: each descriptor is opened through a directory whose process identity was compared, and the
/// kernel binds it to that process. After the end of the process a read fails with `ESRCH`, even if another
/// process has the number.
#[derive(Debug)]
pub struct Sampler {
    kept: Kept,
    /// Of how many processes files are kept.
    limit: usize,
}

#[derive(Debug, Default)]
struct Kept {
    /// The open files of each process, and the round in which it was last read.
    files: FxHashMap<ProcessId, (UsageFile, u64)>,
    round: u64,
}

/// The most descriptors that are kept, even if the process may open more.
const KEPT_MAX: u64 = 4096;

impl Default for Sampler {
    fn default() -> Self {
        Self::new()
    }
}

impl Sampler {
    /// Keeps at most an eighth of the descriptors that this process may open, two for a process. There are two samplers. The
    /// processes that are being ended may use a quarter, and half remains for everything else.
    pub fn new() -> Self {
        let may = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::with_limit(usize::try_from((may / 8).min(KEPT_MAX) / 2).unwrap_or_default())
    }

    fn with_limit(limit: usize) -> Self {
        Self { kept: Kept::default(), limit }
    }

    /// What those of `processes` use that are still alive. Their identity is compared.
    pub fn of(&mut self, proc: &Proc, processes: &[ProcessId]) -> Vec<Memory> {
        let Self { kept, limit } = self;
        kept.round += 1;
        let one = |&process| {
            let Usage { rss_bytes, cpu_ms } = kept.usage(proc, process, *limit)?;
            Some(Memory { process, rss_bytes, cpu_ms })
        };
        processes.iter().filter_map(one).collect()
    }
}

impl Kept {
    fn usage(&mut self, proc: &Proc, process: ProcessId, limit: usize) -> Option<Usage> {
        let round = self.round;
        if let Some((file, asked)) = self.files.get_mut(&process) {
            *asked = round;
            // A zombie has no resident memory, nor has a main thread that exited before its process.
            match file.read() {
                Ok(usage) if usage.rss_bytes > 0 => return Some(usage),
                _ => drop(self.files.remove(&process)),
            }
        }
        let dir = proc.identified(process).ok()??;
        let file = dir.usage().ok()?;
        let usage = file.read().ok()?;
        if self.files.len() >= limit {
            // A process that was not asked about this time has ended, or is of no interest any more.
            self.files.retain(|_, (_, asked)| *asked == round);
        }
        if self.files.len() < limit {
            self.files.insert(process, (file, round));
        }
        Some(usage)
    }
}

impl Probe {
    /// The proportional memory (PSS) in bytes of those of `processes` that are alive and can be read: the
    /// memory that the host regains when they end. This costs 15 us, and 10 us for each resident megabyte, so
    /// it is for a report and not for each tick.
    pub fn proportional(&self, processes: &[ProcessId]) -> Vec<(ProcessId, u64)> {
        let (proc, processes) = (self.proc.clone(), processes.to_vec());
        with_deadline(move || {
            let one = |&process| {
                let dir = proc.identified(process).ok()??;
                Some((process, dir.proportional_bytes().ok()?))
            };
            processes.iter().filter_map(one).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::Started;

    #[test]
    fn only_the_process_meant_is_measured() {
        let proc = Proc::system().unwrap();
        let ours = proc.process(std::process::id()).unwrap().id();
        let other = ProcessId { start: ours.start + 1, ..ours };
        let found = Sampler::new().of(&proc, &[ours, other, ProcessId::new(u32::MAX, 1)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].process, ours);

        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let kib =
            status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap().trim().trim_end_matches(" kB");
        let rss = 1024 * kib.parse::<u64>().unwrap();
        // Other tests run at the same time and change the value.
        assert!(found[0].rss_bytes.abs_diff(rss) < 32 << 20, "{} {rss}", found[0].rss_bytes);
        let pss = proc.process(ours.pid).unwrap().proportional_bytes().unwrap();
        assert!(pss > 0 && pss < rss + (32 << 20));
    }

    #[test]
    fn what_is_kept_answers_for_one_life_only() {
        let proc = Proc::system().unwrap();
        let mut sampler = Sampler::with_limit(8);
        let mut child = Started::sleeper(std::process::Stdio::null());
        let id = child.id();
        assert!(sampler.of(&proc, &[id])[0].rss_bytes > 0);
        assert!(sampler.kept.files.contains_key(&id));
        assert!(sampler.of(&proc, &[id])[0].rss_bytes > 0);
        child.end();
        assert!(sampler.of(&proc, &[id]).is_empty());
        assert!(sampler.kept.files.is_empty());
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let proc = Proc::system().unwrap();
        let mut sampler = Sampler::with_limit(2);
        let children: Vec<_> = (0..4).map(|_| Started::sleeper(std::process::Stdio::null())).collect();
        let ids: Vec<_> = children.iter().map(Started::id).collect();
        assert_eq!(sampler.of(&proc, &ids).len(), 4);
        assert_eq!(sampler.kept.files.len(), 2);
        // The processes asked about now take the place of the others.
        assert_eq!(sampler.of(&proc, &ids[2..]).len(), 2);
        let mut kept: Vec<_> = sampler.kept.files.keys().copied().collect();
        kept.sort_unstable();
        let mut wanted = ids[2..].to_vec();
        wanted.sort_unstable();
        assert_eq!(kept, wanted);
        assert_eq!(Sampler::with_limit(0).of(&proc, &ids).len(), 4);
    }

    #[test]
    fn proportional_memory_of_who_is_there() {
        let probe = Probe::new().unwrap();
        let mut dead = Started::sleeper(std::process::Stdio::null());
        let was = dead.id();
        dead.end();
        let ours = crate::probe::tests::ourselves();
        let found = probe.proportional(&[was, ours]);
        assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [ours]);
        assert!(found[0].1 > 0);
    }
}

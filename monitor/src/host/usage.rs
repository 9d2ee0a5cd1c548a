//! Memory and CPU time of processes.

use rustix::io::Errno;

use super::{Proc, ProcessDir, fields};
use orphand_core::model::{BootTime, Memory, ProcessId};

impl Proc {
    /// What those of `processes` use that are alive and can be read.
    pub fn used(&self, processes: &[ProcessId]) -> Vec<Memory> {
        let one = |process: &ProcessId| self.identified(*process).ok()??.used().ok();
        processes.iter().filter_map(one).collect()
    }

    /// The proportional memory (PSS) of this process in bytes: 0 if it has ended. See [`ProcessDir::proportional_bytes`].
    pub fn proportional(&self, process: ProcessId) -> Result<u64, Errno> {
        self.identified(process)?.map_or(Ok(0), |dir| dir.proportional_bytes())
    }
}

impl ProcessDir {
    /// Its resident memory now, and its CPU time when its directory was opened. No memory is resident of a zombie.
    pub fn used(&self) -> Result<Memory, Errno> {
        // `stat` does not have the exact number of pages (`get_mm_counter_sum()`, since Linux 6.17).
        let (statm, _) = self.file("statm", 256)?;
        let pages = pages(&statm).ok_or(Errno::INVAL)?;
        let rss_bytes = pages.saturating_mul(rustix::param::page_size() as u64);
        let cpu_ms = BootTime::of_ticks(self.stat().cpu).0 / 1_000_000;
        Ok(Memory { process: self.id(), rss_bytes, cpu_ms })
    }

    /// The proportional set size in bytes, from `smaps_rollup`: the memory that the host regains when it ends. It costs
    /// 15 us plus 10 us for each resident megabyte, so it is for a report and not for each tick.
    pub fn proportional_bytes(&self) -> Result<u64, Errno> {
        let (rollup, _) = self.file("smaps_rollup", 8192)?;
        let kib: u64 = fields::number(&rollup, "Pss").ok_or(Errno::INVAL)?;
        Ok(kib.saturating_mul(1024))
    }
}

/// Resident pages: the second field of `statm`.
fn pages(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_meant_is_measured() {
        let proc = Proc::system().unwrap();
        let ours = proc.process(std::process::id()).unwrap().id();
        let other = ProcessId { start: ours.start + 1, ..ours };
        let found = proc.used(&[ours, other, ProcessId::new(u32::MAX, 1)]);
        let [found] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(found.process, ours);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let kib =
            status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap().trim().trim_end_matches(" kB");
        let rss = 1024 * kib.parse::<u64>().unwrap();
        // Other tests run at the same time and change the value.
        assert!(found.rss_bytes.abs_diff(rss) < 32 << 20, "{} {rss}", found.rss_bytes);
        let pss = proc.proportional(ours).unwrap();
        assert!(pss > 0 && pss < rss + (32 << 20));
        assert_eq!(proc.proportional(other), Ok(0));
    }

    #[test]
    fn what_was_computed_counts() {
        let proc = Proc::system().unwrap();
        let used = || proc.process(std::process::id()).unwrap().used().unwrap();
        let before = used();
        let begun = std::time::Instant::now();
        while used().cpu_ms < before.cpu_ms + 20 {
            assert!(begun.elapsed().as_secs() < 10, "{before:?}");
        }
        assert_eq!((pages(b"1000000 4321 7 1 0 2 0\n"), pages(b"12")), (Some(4321), None));
    }
}

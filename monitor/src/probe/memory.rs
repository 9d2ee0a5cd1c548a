//! Memory of processes.

use crate::{
    host::{Proc, ProcessDir},
    model::{Memory, ProcessId},
};

/// The resident memory of those of `processes` that are there still, their identity compared.
pub(super) fn of(proc: &Proc, processes: &[ProcessId]) -> Vec<Memory> {
    let one = |&process| {
        let dir = proc.identified(process).ok()??;
        Some(Memory { process, rss_bytes: resident_bytes(&dir)? })
    };
    processes.iter().filter_map(one).collect()
}

/// Resident set size in bytes.
pub(super) fn resident_bytes(dir: &ProcessDir) -> Option<u64> {
    Some(dir.resident_pages().ok()?.saturating_mul(rustix::param::page_size() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_meant_is_measured() {
        let proc = Proc::system().unwrap();
        let ours = proc.process(std::process::id()).unwrap().id();
        let other = ProcessId { start: ours.start + 1, ..ours };
        let found = of(&proc, &[ours, other, ProcessId::new(u32::MAX, 1)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].process, ours);

        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let kib =
            status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap().trim().trim_end_matches(" kB");
        let rss = 1024 * kib.parse::<u64>().unwrap();
        // Other tests run beside us.
        assert!(found[0].rss_bytes.abs_diff(rss) < 32 << 20, "{} {rss}", found[0].rss_bytes);
        let pss = proc.process(ours.pid).unwrap().proportional_bytes().unwrap();
        assert!(pss > 0 && pss < rss + (32 << 20));
    }
}

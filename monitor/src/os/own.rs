//! This program itself: its executable, its open files, and its OOM score.

use std::{fs, os::fd::AsRawFd};

/// To start this program once more, even if its file was replaced or removed.
pub const PROGRAM: &str = "/proc/self/exe";

/// A path to the file of this descriptor, even if the file's own path leads elsewhere now.
pub fn path_of(descriptor: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// A number from the `fdinfo` of this descriptor, if the kernel tells it.
pub fn told_of(descriptor: &impl AsRawFd, field: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.trim().parse().ok())
}

/// Gives up an inherited protection from the kernel's OOM killer (`OOMScoreAdjust=` of the unit): the score is `least` then,
/// if it was lower.
pub fn raise_oom_score(least: i32) {
    const SCORE: &str = "/proc/self/oom_score_adj";
    let score = fs::read_to_string(SCORE).ok().and_then(|text| text.trim().parse::<i32>().ok());
    if score.is_some_and(|score| score < least) {
        // A process may raise its score without a capability.
        let _ = fs::write(SCORE, least.to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_kernel_tells_of_a_descriptor() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abc").unwrap();
        assert_eq!(told_of(&file, "pos"), Some(3));
        assert_eq!(told_of(&file, "po"), None);
        assert_eq!(told_of(&file, "recursion_misses"), None);
    }
}

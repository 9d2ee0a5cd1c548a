//! This program itself: its file, the files that it has open, and its place when memory runs out.

use std::{fs, os::fd::AsRawFd};

/// The program that runs, even where its file was replaced or removed: to run it once more.
pub const PROGRAM: &str = "/proc/self/exe";

/// A path to the very file that this descriptor is open on, wherever the file's own path leads now.
pub fn path_of(descriptor: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// Gives up a protection from the kernel's OOM killer (`OOMScoreAdjust=` of the unit), which a process inherits.
pub fn drop_oom_protection() {
    const SCORE: &str = "/proc/self/oom_score_adj";
    let is_protected = fs::read_to_string(SCORE).is_ok_and(|text| text.starts_with('-'));
    if is_protected {
        // More likely to be ended: that takes no right.
        let _ = fs::write(SCORE, "0");
    }
}

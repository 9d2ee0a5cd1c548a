//! How fast this machine is at the moment: limits in seconds hold for a machine that is as fast as usual.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// How long the work takes on a machine of two cores on which nothing else runs.
const USUAL: Duration = Duration::from_millis(200);

/// This limit, which holds for a machine that is as fast as usual, for this one as it is now: longer by as much as the same
/// work takes longer, some of which is in the kernel.
pub fn in_time(limit: Duration) -> Result<Duration> {
    let began = Instant::now();
    let mut seen = BTreeMap::new();
    for n in 0..1000_u32 {
        let stat = fs::read_to_string("/proc/self/stat").context("read our own stat")?;
        seen.extend(stat.split(' ').map(|field| (format!("{field} {}", n.wrapping_mul(2_654_435_761)), n)));
    }
    Ok(limit.mul_f64((began.elapsed().as_secs_f64() / USUAL.as_secs_f64()).max(1.0)))
}

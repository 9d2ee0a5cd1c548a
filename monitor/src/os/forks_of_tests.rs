//! Forks of other tests. Tests run as threads of one process: whatever one of them starts has the descriptors of all of them,
//! from its fork until its exec closes them. In that moment it holds every wire that any test holds. So does the thread that
//! closes what others sent to the control socket (`control::caller`).

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

/// Only against waiting for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// A child or such a thread of this process, by number and start time, and whether it has our descriptors still.
type Children = BTreeMap<(u32, u64), bool>;

/// Waits until nobody has what was closed before the call.
pub fn settle() {
    let mut had_it: Vec<_> = children().into_iter().filter(|(_, has)| *has).map(|(id, _)| id).collect();
    let begun = Instant::now();
    while !had_it.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{had_it:?} have not called execve(2)");
        std::thread::yield_now();
        let now = children();
        had_it.retain(|id| now.get(id) == Some(&true));
    }
}

/// Looks while nobody who was just forked has our descriptors: looks again if somebody had them or may have had them. If
/// there is no such moment for long, the last look counts.
pub fn calm<T>(mut look: impl FnMut() -> T) -> T {
    let begun = Instant::now();
    loop {
        settle();
        let before = (children(), reaped());
        let found = look();
        let calm = !before.0.values().any(|has| *has) && before == (children(), reaped());
        if calm || begun.elapsed() > PATIENCE {
            return found;
        }
    }
}

fn children() -> Children {
    let own = (std::process::id(), fs::read("/proc/self/cmdline").unwrap());
    let numbers =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let threads = fs::read_dir("/proc/self/task").unwrap().filter_map(|entry| {
        let path = format!("self/task/{}", entry.ok()?.file_name().to_str()?);
        let closes = fs::read_to_string(format!("/proc/{path}/comm")).ok()? == "orphand-last\n";
        closes.then_some(())?;
        Some(((0, stat(&path)?.get(19)?.parse().ok()?), true))
    });
    numbers.filter_map(|pid: u32| child(pid, &own)).chain(threads).collect()
}

fn child(pid: u32, (parent, arguments): &(u32, Vec<u8>)) -> Option<((u32, u64), bool)> {
    let fields = stat(&pid.to_string())?;
    if fields.get(1)?.parse() != Ok(*parent) {
        return None;
    }
    // Until execve(2) has closed what it closes, the arguments are ours or cannot be read.
    let now = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has = !matches!(fields.first()?.as_str(), "Z" | "X") && (now.is_empty() || now == *arguments);
    Some(((pid, fields.get(19)?.parse().ok()?), has))
}

/// The page faults of the children that were waited for: it grows with every one.
fn reaped() -> String {
    stat("self").unwrap().swap_remove(8)
}

/// The fields of `stat`, from the third, the state.
fn stat(pid: &str) -> Option<Vec<String>> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(line.rsplit_once(") ")?.1.split_ascii_whitespace().map(str::to_owned).collect())
}

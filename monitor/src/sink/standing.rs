//! What persons decided about the mode, in words.

use jiff::{Timestamp, tz::TimeZone};

use super::text::sanitise;
use orphand_core::model::{Mode, Standing};

/// What the daemon does, and who decided that: `is paused until 15:04 by alice`.
pub fn doing(mode: Mode, standing: &Standing, now: Timestamp, zone: &TimeZone) -> String {
    if let Some(pause) = &standing.pause {
        let until =
            pause.until.map(|until| format!(" until {}", clock_time(until, now, zone))).unwrap_or_default();
        return format!("is paused{until} by {}", sanitise(&pause.by));
    }
    let does = match mode {
        Mode::Reap => "ends orphans",
        Mode::Observe => "observes only",
    };
    // With --observe it observes, whatever was decided.
    let chosen = standing.chosen.as_ref().filter(|chosen| chosen.mode == mode);
    let by = chosen.map(|chosen| format!(", decided by {}", sanitise(&chosen.by))).unwrap_or_default();
    format!("{does}{by}")
}

/// `15:04`, with the date if that is another day.
fn clock_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    at.strftime(if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Decision;

    #[test]
    fn who_decided_what_and_until_when() {
        let noon: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        let mut standing = Standing::default();
        let told = |standing: &Standing, mode| doing(mode, standing, noon, &TimeZone::UTC);
        assert_eq!(told(&standing, Mode::Reap), "ends orphans");
        assert_eq!(told(&standing, Mode::Observe), "observes only");
        standing.decide(&Decision::Mode { mode: Some(Mode::Reap) }, "al\u{1b}ice", noon);
        assert_eq!(told(&standing, Mode::Reap), "ends orphans, decided by al\\x1bice");
        assert_eq!(told(&standing, Mode::Observe), "observes only");
        let hours = |hours: u64| Decision::Pause { for_ms: Some(hours * 3_600_000) };
        for (decision, words) in [
            (hours(3), "is paused until 15:00 by bob"),
            (hours(24), "is paused until 2026-11-24 12:00 by bob"),
            (Decision::Pause { for_ms: None }, "is paused by bob"),
        ] {
            standing.decide(&decision, "bob", noon);
            assert_eq!(told(&standing, Mode::Observe), words);
        }
    }
}

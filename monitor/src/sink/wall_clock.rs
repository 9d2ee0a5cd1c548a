//! Kernel time stamps as wall-clock time. Pure: the offset between the clocks is measured once, elsewhere.

use std::fmt::Write as _;

use jiff::{Timestamp, tz::TimeZone};

use orphand_core::model::BootTime;

/// The end of a field that has a time of the boot clock in nanoseconds, and what starts one with clock ticks.
const BOOT_TIME: &str = "_boot_ns\":";
const TICKS: &str = "\"start\":";

/// The offset of the wall clock at one time. Later steps are ignored: the times of one daemon are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallClock {
    /// `CLOCK_REALTIME` - `CLOCK_BOOTTIME` in nanoseconds.
    pub offset_ns: i64,
}

impl WallClock {
    pub fn timestamp(self, at: BootTime) -> Timestamp {
        // At most u64::MAX + i64::MAX ns after 1970, some 877 years: always a valid timestamp.
        Timestamp::from_nanosecond(i128::from(at.0) + i128::from(self.offset_ns))
            .unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// RFC 3339 with microseconds, in UTC: `2026-07-27T12:01:33.000042Z`.
    pub fn rfc3339(self, at: BootTime) -> String {
        format!("{:.6}", self.timestamp(at))
    }

    /// JSON with the times of its processes and deadlines as RFC 3339, too: `started` beside `start`, and a field without
    /// the end `_boot_ns` beside each that has it. A quote in a text is escaped, so no text looks like a field.
    pub fn tell_times(self, json: &str, out: &mut String) {
        let mut rest = json;
        while let Some((at, mark)) =
            [TICKS, BOOT_TIME].into_iter().filter_map(|mark| Some((rest.find(mark)?, mark))).min()
        {
            let (before, field) = rest.split_at(at);
            let value = field.get(mark.len()..).unwrap_or_default().trim_start();
            let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
            let (number, tail) = value.split_at(end);
            out.push_str(before);
            out.push_str(field.get(..field.len() - tail.len()).unwrap_or_default());
            rest = tail;
            let name = if mark == TICKS { Some("started") } else { before.rsplit('"').next() };
            let number = number.parse().ok().filter(|number| *number > 0);
            if let Some((name, number)) = name.filter(|name| !name.is_empty()).zip(number) {
                let at = if mark == TICKS { BootTime::of_ticks(number) } else { BootTime(number) };
                // In indented JSON it has a line of its own.
                let line = before.rfind('\n').and_then(|at| before.get(at..)).unwrap_or_default();
                let line = line.split('"').next().unwrap_or_default();
                let (line, blank) = if field.get(mark.len()..).is_some_and(|value| value.starts_with(' ')) {
                    (line, " ")
                } else {
                    ("", "")
                };
                let _ = write!(out, ",{line}\"{name}\":{blank}\"{}\"", self.rfc3339(at));
            }
        }
        out.push_str(rest);
    }
}

/// A time as people read it: `2026-11-21 14:03:00`.
pub fn shown(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_in_utc() {
        let wall = WallClock { offset_ns: 1_785_153_600_000_000_000 };
        assert_eq!(wall.rfc3339(BootTime(93_000_042_999)), "2026-07-27T12:01:33.000042Z");
        assert_eq!(wall.rfc3339(BootTime(0)), "2026-07-27T12:00:00.000000Z");
    }

    #[test]
    fn times_are_told_beside_ticks_and_nanoseconds() {
        let wall = WallClock { offset_ns: 1_785_153_600_000_000_000 };
        let told = |json: &str| {
            let mut out = String::new();
            wall.tell_times(json, &mut out);
            out
        };
        assert_eq!(
            told(r#"{"pid":7,"start":150,"deadline_boot_ns":93000042999,"boot_ns":5}"#),
            concat!(
                r#"{"pid":7,"start":150,"started":"2026-07-27T12:00:01.500000Z","deadline_boot_ns":93000042999,"#,
                r#""deadline":"2026-07-27T12:01:33.000042Z","boot_ns":5}"#
            )
        );
        let value = serde_json::json!({ "a": [{ "pid": 7, "start": 150 }], "start": 0, "text": "\"start\":150 _boot_ns\":7" });
        let mut pretty: serde_json::Value =
            serde_json::from_str(&told(&serde_json::to_string_pretty(&value).unwrap())).unwrap();
        assert_eq!(pretty["a"][0]["started"], "2026-07-27T12:00:01.500000Z");
        pretty["a"][0].as_object_mut().unwrap().remove("started");
        assert_eq!(pretty, value, "nothing else has changed");
        assert_eq!(told(r#"{"start":null}"#), r#"{"start":null}"#);
    }

    #[test]
    fn every_time_there_is_can_be_told() {
        for at in [0, 1, u64::MAX] {
            for offset_ns in [i64::MIN, -1, 0, i64::MAX] {
                let shown = WallClock { offset_ns }.rfc3339(BootTime(at));
                assert!(shown.ends_with('Z'), "{shown}");
            }
        }
    }
}

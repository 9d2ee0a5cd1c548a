//! Conversion of kernel time stamps to wall-clock time. Pure: the offset between the clocks is measured once,
//! elsewhere.

use jiff::Timestamp;

use orphand_core::model::BootTime;

/// The offset of the wall clock to `CLOCK_BOOTTIME` at one time. Later steps of the wall clock are ignored,
/// so that the times of one daemon are ordered and their differences are correct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallClock {
    /// `CLOCK_REALTIME` - `CLOCK_BOOTTIME` in nanoseconds.
    pub offset_ns: i64,
}

impl WallClock {
    /// The wall-clock time of `at`.
    pub fn timestamp(self, at: BootTime) -> Timestamp {
        // At most u64::MAX + i64::MAX ns after 1970, some 877 years: always a valid timestamp.
        Timestamp::from_nanosecond(i128::from(at.0) + i128::from(self.offset_ns))
            .unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// RFC 3339 with microseconds, in UTC: `2026-07-27T12:01:33.000042Z`.
    pub fn rfc3339(self, at: BootTime) -> String {
        format!("{:.6}", self.timestamp(at))
    }
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
    fn every_time_there_is_can_be_told() {
        for at in [0, 1, u64::MAX] {
            for offset_ns in [i64::MIN, -1, 0, i64::MAX] {
                let shown = WallClock { offset_ns }.rfc3339(BootTime(at));
                assert!(shown.ends_with('Z'), "{shown}");
            }
        }
    }
}

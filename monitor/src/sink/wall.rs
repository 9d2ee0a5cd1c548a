//! From the kernel's clock to the calendar. Pure: the offset between the two is taken once, outside.

use jiff::Timestamp;

use orphand_core::model::BootTime;

/// The wall clock as it stood against `CLOCK_BOOTTIME` at one moment. Later steps of the wall clock do not
/// show: the times of one run are in order and their differences are true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wall {
    /// `CLOCK_REALTIME` - `CLOCK_BOOTTIME` in nanoseconds.
    pub offset_ns: i64,
}

impl Wall {
    /// The moment of the calendar that `at` is.
    pub fn timestamp(self, at: BootTime) -> Timestamp {
        // At most u64::MAX + i64::MAX ns from 1970, some 877 years: always within what a timestamp can be.
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
        let wall = Wall { offset_ns: 1_785_153_600_000_000_000 };
        assert_eq!(wall.rfc3339(BootTime(93_000_042_999)), "2026-07-27T12:01:33.000042Z");
        assert_eq!(wall.rfc3339(BootTime(0)), "2026-07-27T12:00:00.000000Z");
    }

    #[test]
    fn every_time_there_is_can_be_told() {
        for at in [0, 1, u64::MAX] {
            for offset_ns in [i64::MIN, -1, 0, i64::MAX] {
                let shown = Wall { offset_ns }.rfc3339(BootTime(at));
                assert!(shown.ends_with('Z'), "{shown}");
            }
        }
    }
}

//! A time in the past as a person types it: `14:03`, `yesterday 9:30`, `2026-11-23 14:03`, or how long ago: `90m`, `now`.
//!
//! Times are local unless they name their zone (`2026-11-23T14:03:00Z`). A time without a date is the latest such time
//! that is not in the future: at 9:00, `14:03` is that of yesterday.

use std::{str::FromStr, time::Duration};

use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{Date, DateTime, Time},
};

use orphand_core::model::duration::{DurationError, parse_period};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Ago(Duration),
    /// The latest such time.
    Clock(Time),
    /// Such a time so many days ago.
    DaysAgo(i8, Time),
    Local(DateTime),
    /// A time with its zone.
    Exact(Timestamp),
}

const HOW: &str = "write it like \"14:03\", \"yesterday 14:03\", \"2026-11-23 14:03\", \"2026-11-23\", or how long ago, like \"90m\", \"24h\", \"7d\"";

const TOO_LONG_AGO: &str = "that is more than a hundred years ago: the longest time is \"36525d\"";

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Some(time) = clock(text) {
            return Ok(Self::Clock(time));
        }
        if text == "now" {
            return Ok(Self::Ago(Duration::ZERO));
        }
        // `14:03:99` is no time, and no time ago either.
        if !text.contains(':') {
            match parse_period(text) {
                Ok(ago) => return Ok(Self::Ago(ago)),
                Err(DurationError::TooLongAgo(_)) => return Err(TOO_LONG_AGO),
                Err(_) => {}
            }
        }
        if let Some((day, rest)) = text.split_once(' ')
            && let Some(days) = days_ago(day)
        {
            return clock(rest).map(|time| Self::DaysAgo(days, time)).ok_or(HOW);
        }
        if let Some(days) = days_ago(text) {
            return Ok(Self::DaysAgo(days, Time::midnight()));
        }
        if let Ok(exact) = text.parse::<Timestamp>() {
            return Ok(Self::Exact(exact));
        }
        let (date, time) =
            text.split_once([' ', 'T']).map_or((text, None), |(date, time)| (date, Some(time)));
        let date = date.parse::<Date>().map_err(|_| HOW)?;
        let time = time.map_or(Some(Time::midnight()), clock).ok_or(HOW)?;
        Ok(Self::Local(date.to_datetime(time)))
    }
}

fn days_ago(word: &str) -> Option<i8> {
    match word {
        "today" => Some(0),
        "yesterday" => Some(1),
        _ => None,
    }
}

/// `9:30`, `21:05:30`. `21:5` may be half of `21:50`: minutes and seconds have two digits.
fn clock(text: &str) -> Option<Time> {
    let text = text.trim();
    let is_whole = text.split(':').skip(1).all(|part| part.len() == 2);
    let parse = |form| Time::strptime(form, text).ok();
    ["%H:%M", "%H:%M:%S"].into_iter().find_map(parse).filter(|_| is_whole)
}

impl Moment {
    /// The time that is meant at the time `now`, in its zone. Nothing, if no calendar has it.
    pub fn resolve(self, now: &Zoned) -> Option<Timestamp> {
        let local = |date: Date, time: Time| {
            date.to_datetime(time).to_zoned(now.time_zone().clone()).ok().map(|at| at.timestamp())
        };
        match self {
            // Nothing that orphand keeps began before 1970.
            Self::Ago(ago) => Some(now.timestamp().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH)),
            Self::Clock(time) => {
                let today = local(now.date(), time)?;
                if today <= now.timestamp() { Some(today) } else { local(now.date().yesterday().ok()?, time) }
            }
            Self::DaysAgo(days, time) => local(now.date().checked_sub(days.days()).ok()?, time),
            Self::Local(at) => local(at.date(), at.time()),
            Self::Exact(at) => Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str, now: &str) -> Option<String> {
        let now: Zoned = now.parse().unwrap();
        text.parse::<Moment>().ok()?.resolve(&now).map(|at| at.to_string())
    }

    #[test]
    fn times_as_a_person_types_them() {
        let now = "2026-11-23T15:00:00+01:00[Europe/Berlin]";
        for (text, at) in [
            ("14:03", "2026-11-23T13:03:00Z"),
            ("9:30", "2026-11-23T08:30:00Z"),
            ("14:03:27", "2026-11-23T13:03:27Z"),
            // Not in the future: that of yesterday.
            ("15:01", "2026-11-22T14:01:00Z"),
            ("today 1:00", "2026-11-23T00:00:00Z"),
            ("yesterday 14:03", "2026-11-22T13:03:00Z"),
            ("yesterday", "2026-11-21T23:00:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            ("2026-11-20 14:03", "2026-11-20T13:03:00Z"),
            ("2026-11-20T14:03:05", "2026-11-20T13:03:05Z"),
            ("2026-11-20T14:03:05Z", "2026-11-20T14:03:05Z"),
            ("90m", "2026-11-23T12:30:00Z"),
            ("now", "2026-11-23T14:00:00Z"),
            ("7d", "2026-11-16T14:00:00Z"),
        ] {
            assert_eq!(resolved(text, now).as_deref(), Some(at), "{text}");
        }
        for text in [
            "",
            "14",
            "25:00",
            "14:60",
            "14:03:99",
            "21:5",
            "yesterday 21:5",
            "2026-11-20 21:5",
            "14:3:4:5",
            "noon",
            "7",
            "tomorrow 14:03",
            "yesterday x",
            "+1:00",
        ] {
            assert_eq!(text.parse::<Moment>(), Err(HOW), "{text}");
        }
        assert_eq!("99999999d".parse::<Moment>(), Err(TOO_LONG_AGO));
        assert_eq!("99999999x".parse::<Moment>(), Err(HOW));
    }

    #[test]
    fn the_night_in_which_the_clock_is_changed() {
        // 2:30 was twice: the first is meant. 2:30 in spring never was: what a clock that was not changed shows.
        let now = "2026-10-25T12:00:00+01:00[Europe/Berlin]";
        assert_eq!(resolved("2:30", now).as_deref(), Some("2026-10-25T00:30:00Z"));
        let now = "2026-03-29T12:00:00+02:00[Europe/Berlin]";
        assert_eq!(resolved("2:30", now).as_deref(), Some("2026-03-29T01:30:00Z"));
        let now = "2026-03-29T12:00:00+02:00[Europe/Berlin]";
        assert_eq!(resolved("yesterday 2:30", now).as_deref(), Some("2026-03-28T01:30:00Z"));
    }
}

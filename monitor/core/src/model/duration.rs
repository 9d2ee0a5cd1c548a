//! Durations as users write them in the configuration file and in flags: `500ms`, `10s`, `5m`, `1h 30m`.

use std::{str::FromStr, time::Duration};

use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// The longest grace period or timeout that is accepted: one day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest time to look back. It exceeds what any store keeps, and date arithmetic cannot overflow.
const HUNDRED_YEARS: Duration = Duration::from_secs(36_525 * 24 * 60 * 60);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("\"{0}\" is not a duration: write it like \"500ms\", \"10s\", \"5m\", \"24h\"")]
    Syntax(String),
    #[error("\"{0}\" is longer than a day (24h)")]
    TooLong(String),
    #[error("\"{0}\" is longer than a hundred years (36525d)")]
    TooLongAgo(String),
}

/// Parses a duration from zero to one day.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let duration = parsed(text).and_then(|signed: SignedDuration| Duration::try_from(signed).ok());
    let duration = duration.ok_or_else(|| DurationError::Syntax(text.to_owned()))?;
    if duration > LONGEST { Err(DurationError::TooLong(text.to_owned())) } else { Ok(duration) }
}

/// Parses a time to look back: `90m`, `24h`, `7d`, `4w`. A day has 24 hours. The limit is a hundred years.
pub fn parse_period(text: &str) -> Result<Duration, DurationError> {
    let read = |text: &str| {
        let span: Span = parsed(text)?;
        Duration::try_from(span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?).ok()
    };
    match read(text) {
        Some(period) if period <= HUNDRED_YEARS => Ok(period),
        // What is too long is written like what is not, with other numbers.
        _ if read(&with_ones(text)).is_some() => Err(DurationError::TooLongAgo(text.to_owned())),
        _ => Err(DurationError::Syntax(text.to_owned())),
    }
}

/// The text with 1 for each of its numbers.
fn with_ones(text: &str) -> String {
    let mut ones = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if ones.ends_with('1') => {}
            '0'..='9' => ones.push('1'),
            _ => ones.push(letter),
        }
    }
    ones
}

/// jiff also accepts ISO 8601, signs and "ago"; orphand does not.
fn parsed<T: FromStr>(text: &str) -> Option<T> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains("ago");
    text.parse().ok().filter(|_| is_plain)
}

/// Formats a duration so that [`parse_duration`] accepts it.
pub fn format_duration(duration: Duration) -> String {
    SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{}s", duration.as_secs()), |d| format!("{d:#}"))
}

pub fn serialize<S: Serializer>(duration: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&format_duration(*duration))
}

pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    parse_duration(&String::deserialize(d)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for (text, millis, written) in [
            ("500ms", 500, "500ms"),
            ("10s", 10_000, "10s"),
            ("5m", 300_000, "5m"),
            ("0s", 0, "0s"),
            ("1h 30m", 5_400_000, "1h 30m"),
            ("1h30m", 5_400_000, "1h 30m"),
            ("90s", 90_000, "1m 30s"),
            ("24h", 86_400_000, "24h"),
        ] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(duration, Duration::from_millis(millis), "{text}");
            assert_eq!(format_duration(duration), written);
            assert_eq!(parse_duration(written), Ok(duration));
        }
    }

    #[test]
    fn a_time_to_look_back_may_be_long() {
        let hour = 3600;
        for (text, seconds) in
            [("90m", 5400), ("24h", 24 * hour), ("7d", 168 * hour), ("4w", 672 * hour), ("1d 2h", 26 * hour)]
        {
            assert_eq!(parse_period(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "7", "-7d", "7d ago", "1mo"] {
            assert_eq!(parse_period(text), Err(DurationError::Syntax(text.into())), "{text}");
        }
        assert_eq!(parse_period("36525d"), Ok(HUNDRED_YEARS));
        for text in ["36526d", "200000w", "99999999d", "1d 99999999999999999999s"] {
            assert_eq!(parse_period(text), Err(DurationError::TooLongAgo(text.into())), "{text}");
        }
    }

    #[test]
    fn refuses() {
        for text in
            ["", "10", "s", "-1s", "+1s", "PT10S", "10 parsecs", "1s ago", "5mo", "99999999999999999999s"]
        {
            assert_eq!(parse_duration(text), Err(DurationError::Syntax(text.into())), "{text}");
        }
        assert_eq!(parse_duration("25h"), Err(DurationError::TooLong("25h".into())));
    }
}

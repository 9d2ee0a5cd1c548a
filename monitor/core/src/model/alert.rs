//! Alert rules: thresholds that are reported when they are crossed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration::parse_duration;

/// The default period of `rate` and `reap_failures`.
const WITHIN: Duration = Duration::from_secs(3600);
/// From one alert of a rule to the next, at least.
const COOLDOWN: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// Orphans that are alive, including those that stay because of a guard.
    Orphans,
    /// Resident memory of those orphans in bytes, each as last measured.
    Rss,
    /// Processor time of orphans and unproven servers over the last minute, in percent of one CPU.
    Cpu,
    /// Orphans that were detected within a period.
    Rate,
    /// Orphans that could not be ended, within a time.
    ReapFailures,
    /// 1 from a loss of kernel records until /proc has been read again; otherwise 0.
    Blind,
}

impl Watched {
    pub const fn has_period(self) -> bool {
        matches!(self, Self::Rate | Self::ReapFailures)
    }
}

/// An alert rule: a line of `alert` in the configuration, `ON [of AGENT] > LIMIT [for DURATION]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AlertRule {
    /// Its name, part of every alert: the line.
    pub name: String,
    pub on: Watched,
    /// The threshold: the alert is raised above this value; for `rss` in bytes, for `cpu` in percent of one CPU.
    pub above: u64,
    /// Count only agents of this name, or of this unit. Absent: the whole host.
    pub agent: Option<String>,
    /// The period of `rate` and `reap_failures`; zero for the others.
    pub within: Duration,
    /// How long the threshold must stay crossed before the alert is raised.
    pub hold: Duration,
    /// The least time between two alerts of this rule.
    pub cooldown: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{line}\" is no alert: {why}")]
pub struct AlertRuleError {
    line: String,
    why: &'static str,
}

impl TryFrom<String> for AlertRule {
    type Error = AlertRuleError;

    fn try_from(line: String) -> Result<Self, AlertRuleError> {
        parse(&line).map_err(|why| AlertRuleError { line, why })
    }
}

impl From<AlertRule> for String {
    fn from(rule: AlertRule) -> Self {
        rule.name
    }
}

fn parse(line: &str) -> Result<AlertRule, &'static str> {
    let name = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = name.split(' ').next().unwrap_or_default();
    let on: Watched = serde_json::from_value(first.into())
        .map_err(|_| "it begins with orphans, rss, cpu, rate, reap_failures or blind")?;
    let rest = name.get(first.len()..).unwrap_or_default();
    let (agent, behind) = match (on, rest.split_once(" > ")) {
        (Watched::Blind, None) => ("", rest),
        (Watched::Blind, Some(_)) => return Err("blind has no limit"),
        (_, Some(both)) => both,
        (_, None) => return Err("it has no limit, such as > 10"),
    };
    let agent = match agent.strip_prefix(" of ") {
        None if agent.is_empty() => None,
        None => return Err("what stands before the limit is no `of AGENT`"),
        Some(agent) => Some(agent.to_owned()),
    };
    let word = if on.has_period() { " in " } else { " for " };
    let (limit, time) = behind.split_once(word).map_or((behind, None), |(limit, time)| (limit, Some(time)));
    let above = match (on, limit) {
        (Watched::Blind, "") => 0,
        (Watched::Blind, _) => return Err("blind takes no more than a time, such as for 1m"),
        (on, limit) => if on == Watched::Rss { parse_size(limit) } else { limit.parse().ok() }.ok_or(if on.has_period() {
            "its limit is no number, and its time begins with in: rate > 5 in 1h"
        } else {
            "its limit is no number (for rss with K, M, G or T), and its time begins with for: rss > 4G for 1m"
        })?,
    };
    let time = time.map(parse_duration).transpose().map_err(|_| "its time is no duration, such as 1m")?;
    let (within, hold) = match on.has_period() {
        true if time.is_some_and(|time| time.is_zero()) => return Err("its time is zero"),
        true => (time.unwrap_or(WITHIN), Duration::ZERO),
        false => (Duration::ZERO, time.unwrap_or_default()),
    };
    Ok(AlertRule { name, on, above, agent, within, hold, cooldown: COOLDOWN })
}

/// A size such as `65536`, `512M` or `4G` (powers of 1024).
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let unit = [('K', 10), ('M', 20), ('G', 30), ('T', 40)].into_iter().find_map(|(unit, shift)| {
        text.strip_suffix([unit, unit.to_ascii_lowercase()]).map(|digits| (digits, shift))
    });
    let (digits, shift) = unit.unwrap_or((text, 0));
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<AlertRule, String> {
        AlertRule::try_from(line.to_owned()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_is_a_rule() {
        let rule = read("orphans  of my bot > 10 for 1m").unwrap();
        assert_eq!((rule.on, rule.above, rule.agent.as_deref()), (Watched::Orphans, 10, Some("my bot")));
        assert_eq!(
            (rule.within, rule.hold, rule.cooldown),
            (Duration::ZERO, Duration::from_secs(60), COOLDOWN)
        );
        assert_eq!(rule.name, "orphans of my bot > 10 for 1m");
        assert_eq!(read(&String::from(rule.clone())).unwrap(), rule);
        let rate = read("rate > 5").unwrap();
        assert_eq!((rate.within, rate.hold, rate.agent), (WITHIN, Duration::ZERO, None));
        assert_eq!(read("reap_failures > 0 in 90s").unwrap().within, Duration::from_secs(90));
        assert_eq!(read("blind").unwrap().hold, Duration::ZERO);
        assert_eq!(read("blind for 5s").unwrap().hold, Duration::from_secs(5));
        for (text, bytes) in [("1024", 1024), ("2k", 2048), ("512M", 512 << 20), ("4G", 4 << 30)] {
            assert_eq!(read(&format!("rss > {text}")).unwrap().above, bytes);
        }
    }

    #[test]
    fn what_can_never_be_is_refused() {
        for (line, part) in [
            ("", "it begins with"),
            ("orphan > 1", "it begins with orphans"),
            ("orphans", "no limit"),
            ("orphans claude > 1", "no `of AGENT`"),
            ("orphans > 4G", "is no number"),
            ("orphans > -1", "is no number"),
            ("rss > 4 parsecs", "is no number"),
            ("rss > 99999999999T", "is no number"),
            ("rss > 1.5", "is no number"),
            ("orphans > 1 in 1h", "begins with for"),
            ("rate > 1 for 1h", "begins with in"),
            ("rate > 1 in 0s", "is zero"),
            ("orphans > 1 for ever", "no duration"),
            ("blind > 1", "no limit"),
            ("blind of claude", "no more than a time"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

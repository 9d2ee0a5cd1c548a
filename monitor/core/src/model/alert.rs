//! Alert rules: thresholds that are reported when they are crossed.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The default period of `rate` and `reap_failures`.
const WITHIN: Duration = Duration::from_secs(3600);
/// The default of `cooldown`.
const COOLDOWN: Duration = Duration::from_secs(600);

/// What an alert watches.
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
    /// Its name in the configuration and in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Orphans => "orphans",
            Self::Rss => "rss",
            Self::Cpu => "cpu",
            Self::Rate => "rate",
            Self::ReapFailures => "reap_failures",
            Self::Blind => "blind",
        }
    }

    /// Whether it counts events within a period.
    pub const fn has_period(self) -> bool {
        matches!(self, Self::Rate | Self::ReapFailures)
    }
}

/// An alert rule: `[[alert]]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct AlertRule {
    /// Its name, part of every alert.
    pub name: String,
    /// What it watches.
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

/// Why an alert rule is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlertRuleError {
    /// `above` is missing.
    #[error("the alert \"{0}\" has no limit: add one, for example `above = 10`")]
    NoLimit(String),
    /// `blind` takes no threshold.
    #[error("the alert \"{0}\" on `blind` takes no limit: remove `above`")]
    BlindLimit(String),
    /// A size where a count is expected.
    #[error("the alert \"{0}\" counts things: write `above` as a plain number; sizes are for `on = \"rss\"`")]
    SizeForCount(String),
    /// The period is zero.
    #[error("the alert \"{0}\" has a period of zero: set `for`, for example to \"1h\"")]
    NoTime(String),
    /// `blind` cannot be limited to an agent.
    #[error("the alert \"{0}\" on `blind` is about the whole host: remove `agent`")]
    BlindAgent(String),
    /// The name is missing or blank.
    #[error("an alert needs a name: `name = \"too many orphans\"`")]
    NoName,
}

/// An alert rule as it is written in the configuration.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    on: Watched,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    above: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    agent: Option<String>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none", default)]
    hold: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cooldown: Option<Time>,
}

/// A duration as users write it.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Time(#[serde(with = "crate::model::duration")] Duration);

impl TryFrom<Written> for AlertRule {
    type Error = AlertRuleError;

    fn try_from(written: Written) -> Result<Self, AlertRuleError> {
        let Written { name, on, above, agent, hold, cooldown } = written;
        if name.trim().is_empty() {
            return Err(AlertRuleError::NoName);
        }
        let above = match (on, above) {
            (Watched::Blind, None) => 0,
            (Watched::Blind, Some(_)) => return Err(AlertRuleError::BlindLimit(name)),
            (Watched::Rss, Some(limit)) => limit.value,
            (_, Some(Limit { is_size: true, .. })) => return Err(AlertRuleError::SizeForCount(name)),
            (_, Some(limit)) => limit.value,
            (_, None) => return Err(AlertRuleError::NoLimit(name)),
        };
        if on == Watched::Blind && agent.is_some() {
            return Err(AlertRuleError::BlindAgent(name));
        }
        let hold = hold.map(|Time(time)| time);
        let (within, hold) = match on.has_period() {
            true if hold.is_some_and(|time| time.is_zero()) => return Err(AlertRuleError::NoTime(name)),
            true => (hold.unwrap_or(WITHIN), Duration::ZERO),
            false => (Duration::ZERO, hold.unwrap_or_default()),
        };
        let cooldown = cooldown.map_or(COOLDOWN, |Time(time)| time);
        Ok(Self { name, on, above, agent, within, hold, cooldown })
    }
}

impl From<AlertRule> for Written {
    fn from(rule: AlertRule) -> Self {
        let AlertRule { name, on, above, agent, within, hold, cooldown } = rule;
        Self {
            name,
            on,
            above: (on != Watched::Blind).then_some(Limit { value: above, is_size: false }),
            agent,
            hold: Some(if on.has_period() { within } else { hold }).filter(|time| !time.is_zero()).map(Time),
            cooldown: Some(Time(cooldown)),
        }
    }
}

/// A count, or a size such as `512M` or `4G` (powers of 1024).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    value: u64,
    is_size: bool,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
        let unit = units.iter().find_map(|(unit, shift)| {
            text.strip_suffix([*unit, unit.to_ascii_lowercase()]).map(|digits| (digits, *shift))
        });
        let (digits, shift) = unit.unwrap_or((text, 0));
        let value = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        value.map(|value| Self { value, is_size: unit.is_some() }).ok_or_else(|| {
            format!("\"{text}\" is not a limit: write a number, or a size like \"512M\", \"4G\"")
        })
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(self.value)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a size like \"4G\"")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Limit, E> {
                Ok(Limit { value, is_size: false })
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Limit, E> {
                let value = u64::try_from(value).map_err(|_| E::custom("a limit cannot be negative"))?;
                Ok(Limit { value, is_size: false })
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Limit, E> {
                text.parse().map_err(E::custom)
            }
        }
        d.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    struct File {
        alert: Vec<AlertRule>,
    }

    fn read(text: &str) -> Result<AlertRule, String> {
        let file = toml::from_str::<File>(&format!("[[alert]]\n{text}"));
        file.map(|mut file| file.alert.remove(0)).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn what_is_not_said_is_sensible() {
        let rule = read("name = 'many'\non = 'orphans'\nabove = 10").unwrap();
        assert_eq!((rule.above, rule.within, rule.hold), (10, Duration::ZERO, Duration::ZERO));
        assert_eq!(rule.cooldown, COOLDOWN);
        assert_eq!(read("name = 'fast'\non = 'rate'\nabove = 5").unwrap().within, WITHIN);
        assert_eq!(read("name = 'b'\non = 'blind'\nfor = '5s'").unwrap().hold, Duration::from_secs(5));
    }

    #[test]
    fn sizes_are_read_and_all_comes_back() {
        for (text, bytes) in
            [("1024", 1024), ("'2k'", 2048), ("'512M'", 512 << 20), ("'4G'", 4 << 30), ("'7'", 7)]
        {
            let rule = read(&format!("name = 'big'\non = 'rss'\nabove = {text}\nagent = 'claude'")).unwrap();
            assert_eq!(rule.above, bytes);
            let written = toml::to_string(&File { alert: vec![rule.clone()] }).unwrap();
            assert_eq!(toml::from_str::<File>(&written).unwrap().alert, vec![rule], "{written}");
        }
        for text in
            ["name = 'r'\non = 'rate'\nabove = 0\nfor = '90s'\ncooldown = '0s'", "name = 'b'\non = 'blind'"]
        {
            let rule = read(text).unwrap();
            let written = toml::to_string(&File { alert: vec![rule.clone()] }).unwrap();
            assert_eq!(toml::from_str::<File>(&written).unwrap().alert, vec![rule], "{written}");
        }
    }

    #[test]
    fn what_can_never_be_is_refused() {
        for (text, part) in [
            ("name = 'x'\non = 'orphans'", "no limit"),
            ("name = 'x'\non = 'orphans'\nabove = '4G'", "sizes are for"),
            ("name = 'x'\non = 'orphans'\nabove = -1", "cannot be negative"),
            ("name = 'x'\non = 'rss'\nabove = '4 parsecs'", "is not a limit"),
            ("name = 'x'\non = 'rss'\nabove = '99999999999T'", "is not a limit"),
            ("name = 'x'\non = 'rss'\nabove = 1.5", "a number, or a size"),
            ("name = 'x'\non = 'orphans'\nabove = 1\nwithin = '1h'", "unknown field `within`"),
            ("name = 'x'\non = 'rate'\nabove = 1\nfor = '0s'", "period of zero"),
            ("name = 'x'\non = 'blind'\nabove = 1", "takes no limit"),
            ("name = 'x'\non = 'blind'\nagent = 'claude'", "whole host"),
            ("name = ' '\non = 'blind'", "needs a name"),
            ("name = 'x'\non = 'blind'\ncooldow = '1s'", "unknown field `cooldow`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

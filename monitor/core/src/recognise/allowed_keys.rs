//! Which keys the rules of each table may have: deserializers for the tables of the configuration.

use serde::{Deserialize, Deserializer, de::Error as _};

use super::rule::{Rule, RuleError};

/// Rules about programs alone.
pub fn not_agents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    checked(from, |rule| no_reap(rule).or_else(|| no_unit(rule)).or_else(|| no_user(rule)))
}

/// Rules about agents: a program or a unit.
pub fn agents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    checked(from, no_user)
}

/// Exemptions: a program, a unit, or a user.
pub fn exemptions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    checked(from, no_reap)
}

fn checked<'de, D: Deserializer<'de>>(
    from: D,
    refuse: fn(&Rule) -> Option<RuleError>,
) -> Result<Vec<Rule>, D::Error> {
    let rules = Vec::<Rule>::deserialize(from)?;
    rules.iter().find_map(refuse).map_or(Ok(()), |error| Err(D::Error::custom(error))).map(|()| rules)
}

fn no_reap(rule: &Rule) -> Option<RuleError> {
    let is_agents = rule.reap || rule.daemon || rule.thread_scoped;
    is_agents.then(|| RuleError::AgentsOnly(rule.name().to_owned()))
}

fn no_unit(rule: &Rule) -> Option<RuleError> {
    rule.unit.is_some().then(|| RuleError::NoUnit(rule.name().to_owned()))
}

fn no_user(rule: &Rule) -> Option<RuleError> {
    rule.user.is_some().then(|| RuleError::NoUser(rule.name().to_owned()))
}

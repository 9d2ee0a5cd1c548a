//! The rules of the configuration, by table: what each table may say, and the order in which they are tried.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::rule::{Rule, RuleError};

/// Deserializes rules of exempt programs and of servers.
pub fn not_agents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    of_kind(from, false, false)
}

/// Deserializes rules of agents.
pub fn agents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    of_kind(from, true, false)
}

/// Deserializes rules of other programs.
pub fn programs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    of_kind(from, false, true)
}

fn of_kind<'de, D: Deserializer<'de>>(from: D, agents: bool, programs: bool) -> Result<Vec<Rule>, D::Error> {
    let rules = Vec::<Rule>::deserialize(from)?;
    let wrong = |rule: &Rule| match () {
        () if !agents && rule.is_for_agents() => Some(RuleError::AgentsOnly(rule.name().to_owned())),
        () if rule.kind().is_some() != programs => Some(RuleError::Kind(rule.name().to_owned())),
        () => None,
    };
    rules.iter().find_map(wrong).map_or(Ok(()), |error| Err(D::Error::custom(error)))?;
    Ok(rules)
}

/// The rules of the configuration by table. Within a table, the first rule that matches counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleBook {
    /// Never ended, and neither is anything below them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_agents")]
    pub exempt: Vec<Rule>,
    /// MCP servers.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_agents")]
    pub server: Vec<Rule>,
    /// Agents.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "agents")]
    pub agent: Vec<Rule>,
    /// Other programs, by their kind.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "programs")]
    pub program: Vec<Rule>,
}

impl RuleBook {
    /// Parses what [`super::Rules::source`] wrote.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The tables with their names, in the order in which they are tried; multiplexers are tried second.
    pub fn tables(&self) -> [(&'static str, &[Rule]); 4] {
        let Self { exempt, server, agent, program } = self;
        [("exempt", exempt), ("server", server), ("agent", agent), ("program", program)]
    }

    /// All rules, each with whether it needs a wire on standard input.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&Rule, bool)> {
        self.tables()
            .into_iter()
            .flat_map(|(table, rules)| rules.iter().map(move |rule| (rule, table != "agent")))
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules().count()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

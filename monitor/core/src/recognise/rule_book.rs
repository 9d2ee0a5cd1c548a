//! The rules of the configuration, by table: what each table may say, and the order in which they are tried.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::rule::{Rule, Table};

/// Deserializes rules of what is exempt.
pub fn exemptions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    of_table(from, Table::Exempt)
}

pub fn agents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    of_table(from, Table::Agent)
}

/// Deserializes rules of programs of every kind.
pub fn programs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    of_table(from, Table::Program)
}

fn of_table<'de, D: Deserializer<'de>>(from: D, table: Table) -> Result<Vec<Rule>, D::Error> {
    let rules = Vec::<Rule>::deserialize(from)?;
    rules.iter().try_for_each(|rule| rule.check_for(table)).map_err(D::Error::custom)?;
    Ok(rules)
}

/// The rules of the configuration by table. Within a table, the first rule that matches counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleBook {
    /// Never ended, and neither is anything below them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "exemptions")]
    pub exempt: Vec<Rule>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "agents")]
    pub agent: Vec<Rule>,
    /// Other programs, servers among them, by their kind.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "programs")]
    pub program: Vec<Rule>,
}

impl RuleBook {
    /// Parses what [`super::Rules::source`] wrote.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The tables with their names, in the order in which they are tried; multiplexers and servers are tried second.
    pub fn tables(&self) -> [(&'static str, &[Rule]); 3] {
        let Self { exempt, agent, program } = self;
        [("exempt", exempt), ("agent", agent), ("program", program)]
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

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

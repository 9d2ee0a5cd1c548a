//! Rules of the configuration. A rule matches if all its keys match. Names may contain the wildcards `*` (any
//! text) and `?` (any character).

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use wildmatch::WildMatch;

use super::{
    known_programs::{SHELLS, contains},
    program::{Carrier, Program, interpreter},
    text::{base, program_name, stem, unscoped, without_deleted},
};
use crate::model::{Image, duration, redact};

/// A rule of the configuration. The table that contains it says what it does, see [`super::Rules`]. It matches if all
/// its keys match.
///
/// docs/configuration.md says what its keys mean, and `check_for` in which tables they may be.
///
/// The kernel side finds programs by their file name. A rule whose `program` has wildcards therefore works for
/// processes below agents, behind interpreters and launchers, and at the start of the daemon, but not for a binary
/// that is started anywhere else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Rule {
    pub name: String,
    pub(super) program: Option<String>,
    pub(super) unit: Option<String>,
    /// The name or number of a user.
    pub(super) user: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) reap: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) daemon: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    /// Whether each server of its agents ends with the thread that started it.
    pub thread_scoped: bool,
    pub(super) grace: Option<Time>,
    pub(super) idle_duplicates: Option<Time>,
    pub kind: Option<ProgramKind>,
    /// The words of `program`.
    #[serde(skip)]
    pub(super) words: Vec<WildMatch>,
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)?.checked().map_err(D::Error::custom)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    Server,
    /// A terminal multiplexer or the like: what lives in one has no owner.
    Multiplexer,
    /// It hosts or adopts others, and is never an agent, neither by a built-in rule nor implied.
    Supervisor,
    /// It runs another program on its own standard streams.
    Launcher,
}

/// The shortest time after which a duplicate counts as idle.
const SHORTEST_IDLE: Duration = Duration::from_secs(1);

/// A duration as users write it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Time(#[serde(with = "duration")] Duration);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Exempt,
    Agent,
    Program,
}

impl Rule {
    /// The rule, if it makes sense in some table.
    pub(super) fn checked(mut self) -> Result<Self, RuleError> {
        self.words =
            self.program.iter().flat_map(|text| text.split_whitespace().map(WildMatch::new)).collect();
        let name = &self.name;
        if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
            // Events and reports show it.
            return Err(RuleError("a rule needs a name of 1 to 64 printable characters".to_owned()));
        }
        let program = self.program.as_deref();
        let first = program.and_then(|words| words.split_whitespace().next()).map(base);
        let unit = self.unit.as_deref();
        let is_blank = |text: &str| text.trim().is_empty();
        let is_unit = |unit: &str| {
            matches!(unit.rsplit_once('.'), Some((_, "service" | "slice"))) && !unit.contains('/')
        };
        let empty = [
            ("program", program.is_some_and(is_blank)),
            ("unit", unit.is_some_and(is_blank)),
            ("user", self.user.as_deref().is_some_and(is_blank)),
        ];
        let refused = if program.is_none() && !self.is_about_place() {
            " matches everything: add program, unit or user".to_owned()
        } else if let Some((key, _)) = empty.iter().find(|(_, is_empty)| *is_empty) {
            format!(": {key} is empty")
        } else if let Some(program) =
            first.filter(|name| interpreter(name).is_some() || contains(SHELLS, name))
        {
            format!(": \"{program}\" runs other programs: name the script, module or package that it runs")
        } else if program.is_some() && self.is_about_place() {
            ": a rule with unit or user takes no program: remove one of them; it means what runs there, whatever that is"
                .to_owned()
        } else if unit.is_some() && self.daemon {
            ": a rule with unit takes no daemon: the unit's manager starts its main process".to_owned()
        } else if let Some(unit) = unit.filter(|unit| !is_unit(unit)) {
            Self::no_service(unit)
        } else if self.idle_duplicates().is_some_and(|time| time < SHORTEST_IDLE) {
            ": idle_duplicates is shorter than 1s".to_owned()
        } else {
            return Ok(self);
        };
        Err(RuleError(format!("rule \"{name}\"{refused}")))
    }

    fn no_service(unit: &str) -> String {
        format!(
            ": \"{unit}\" is not a service: unit takes a name such as \"gateway.service\" or \"gateway@*.service\", \
             in [[exempt]] that of a slice, too"
        )
    }

    /// Whether each of its keys means something in this table.
    pub(super) fn check_for(&self, table: Table) -> Result<(), RuleError> {
        let unit = self.unit.as_deref().unwrap_or_default();
        let refused = match table {
            Table::Agent | Table::Program if self.user.is_some() => ": user is for [[exempt]] only".to_owned(),
            Table::Program if self.unit.is_some() => ": unit is for [[agent]] and [[exempt]] only".to_owned(),
            Table::Agent if matches!(unit.rsplit_once('.'), Some((_, "slice"))) => Self::no_service(unit),
            Table::Exempt | Table::Program if self.is_for_agents() => {
                ": reap, daemon, thread_scoped, grace and idle_duplicates are for [[agent]] only".to_owned()
            }
            _ if self.kind.is_some() != (table == Table::Program) => {
                ": kind is for [[program]], and always needed there: server, launcher, supervisor or multiplexer"
                    .to_owned()
            }
            _ => return Ok(()),
        };
        Err(RuleError(format!("rule \"{}\"{refused}", self.name)))
    }

    /// Whether it names the unit or the slice of this name.
    pub(super) fn names_unit(&self, name: &str) -> bool {
        self.unit.as_ref().is_some_and(|pattern| WildMatch::new(pattern).matches(name))
    }

    /// Whether the rule is about a unit or a user and not about a program.
    pub(super) const fn is_about_place(&self) -> bool {
        self.unit.is_some() || self.user.is_some()
    }

    /// Whether it says what only a rule for agents can say.
    const fn is_for_agents(&self) -> bool {
        let has_time = self.grace.is_some() || self.idle_duplicates.is_some();
        self.reap || self.daemon || self.thread_scoped || has_time
    }

    /// How long the servers of its agents may outlive them, if that is another time than for all.
    pub(super) fn grace(&self) -> Option<Duration> {
        self.grace.map(|Time(time)| time)
    }

    /// How long a duplicate of its agents must do nothing until it is ended; `None` if it is not.
    pub fn idle_duplicates(&self) -> Option<Duration> {
        self.idle_duplicates.map(|Time(time)| time)
    }

    pub(super) fn matches(&self, program: &Program<'_>, image: &Image) -> bool {
        self.matches_words(program, image, false)
    }

    /// The same for what was kept of a command line: a masked word may have been any, and so may one that was cut off.
    pub(super) fn may_match(&self, program: &Program<'_>, image: &Image) -> bool {
        self.matches_words(program, image, true)
    }

    fn matches_words(&self, program: &Program<'_>, image: &Image, kept: bool) -> bool {
        let Some((known_as, args)) = self.words.split_first() else { return false };
        let is_masked = |text: &str| kept && text.contains(redact::MASK);
        (is_known_as(program, without_deleted(&image.exe), known_as)
            || is_masked(program.path) && ends_like(program.path, &known_as.pattern()))
            && (args.len() <= program.args.len() || kept && image.argv_truncated)
            && args.iter().zip(program.args).all(|(pattern, arg)| pattern.matches(arg) || is_masked(arg))
    }

    /// The base name of files whose exec this rule may match.
    pub(super) fn file_name(&self) -> Option<&str> {
        let first = self.program.as_ref()?.split_whitespace().next()?;
        let last = first.rsplit_once('/').map_or("", |(_, name)| name);
        let path = if first.contains(['*', '?']) { last } else { first };
        Some(base(path)).filter(|name| !name.is_empty() && !name.contains(['*', '?']))
    }
}

/// Whether a program, whose executable has this path, is known as this: by its name, its package, its module, or its path.
fn is_known_as(program: &Program<'_>, exe: &str, pattern: &WildMatch) -> bool {
    let is = |name: &str| pattern.matches(name);
    if program.package.is_some_and(|name| is(name) || is(unscoped(name))) {
        return true;
    }
    if pattern.pattern_chars().contains(&'/') {
        let runs_itself = matches!(program.carrier, Carrier::Itself | Carrier::Wrapper);
        return program.module.is_none() && is(if runs_itself { exe } else { program.path });
    }
    // As it is called, and as its file is.
    [program.name, stem(program.name), base(program.path)].into_iter().any(is)
        || (program.carrier == Carrier::Itself && (is(base(exe)) || is(program_name(exe))))
        || program.module.is_some_and(is)
}

/// Whether this is the path of a file of the pattern's name.
fn ends_like(path: &str, pattern: &str) -> bool {
    pattern.contains('/') && WildMatch::new(base(pattern)).matches(base(path))
}

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

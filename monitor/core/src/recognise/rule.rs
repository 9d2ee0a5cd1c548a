//! Rules of the configuration. A rule matches if all its keys match. Names may contain the wildcards `*` (any
//! text) and `?` (any character).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use super::{
    interpreter::Interpreter,
    known_programs::{SHELLS, contains},
    program::{Carrier, Program},
    text::{base, stem, unscoped, without_deleted},
};
use crate::model::{Image, Unit, duration};

/// A text with wildcards.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    text: String,
    matcher: WildMatch,
}

impl Pattern {
    fn new(text: String) -> Self {
        Self { matcher: WildMatch::new(&text), text }
    }

    fn matches(&self, text: &str) -> bool {
        self.matcher.matches(text)
    }

    /// Whether a program, whose executable has this path, is known as this: by its name, its package, its module, or its path.
    fn is_of(&self, program: &Program<'_>, exe: &str) -> bool {
        let runs_itself = matches!(program.carrier, Carrier::Itself | Carrier::Wrapper);
        let of_package = |name| self.matches(name) || self.matches(unscoped(name));
        if program.package.is_some_and(of_package) {
            return true;
        }
        if self.text.contains('/') {
            let path = if runs_itself { exe } else { program.path };
            return program.module.is_none() && self.matches(path);
        }
        self.matches(program.name)
            || self.matches(stem(program.name))
            || (program.carrier == Carrier::Itself && self.matches(base(exe)))
            || program.module.is_some_and(|name| self.matches(name))
    }

    /// The text, if it contains no wildcard.
    fn literal(&self) -> Option<&str> {
        (!self.text.contains(['*', '?'])).then_some(self.text.as_str())
    }
}

/// A rule of the configuration. The table that contains it says what it does, see [`super::RuleBook`]. It matches if all
/// its keys match.
///
/// `program` is a command line. Its first word is the program as a person knows it: the name in program position (the
/// executable, the script behind its interpreter with or without extension, the command of `npx`, `uvx`, `pnpm exec`, the image
/// of `docker run -i`), the package it belongs to (with or without scope, without version), or the module of `python -m`. With a
/// slash it is a path: that of the script as it was written, else that of the executable. Further words are the leading
/// arguments.
///
/// A rule for agents may have `unit`, the name of a systemd unit, instead. It matches the main process of the unit,
/// whatever that runs. Such a rule may also have `reap`: agents that the unit has left behind are ended. Without it
/// they are only reported.
///
/// An exemption may have `unit` (a service, or a slice), `user` or both instead: what runs there, as that user
/// ([`super::Rules::exempts`]).
///
/// A rule for agents may have `daemon`: its agents are meant to outlive whoever started them.
/// A rule for agents may have `thread_scoped`: each server ends with the thread of the agent that started it.
/// A rule for programs has `kind`: what such a program is.
/// A rule for agents may have `grace`, for the servers of its agents, in place of the one for all.
/// A rule for agents may have `idle_duplicates`: how long a duplicate must do nothing until it is ended.
///
/// The kernel side finds programs by their file name. A rule whose `program` has wildcards therefore works for
/// processes below agents, behind interpreters and launchers, and at the start of the daemon, but not for a binary
/// that is started anywhere else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Rule {
    name: String,
    /// The words of `program`; empty without.
    program: Vec<Pattern>,
    pub(super) unit: Option<Pattern>,
    /// The name or number of a user.
    pub(super) user: Option<String>,
    pub(super) reap: bool,
    pub(super) daemon: bool,
    pub(super) thread_scoped: bool,
    grace: Option<Duration>,
    idle_duplicates: Option<Duration>,
    kind: Option<ProgramKind>,
}

/// What a program is that is no agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// An MCP server.
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
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Time(#[serde(with = "duration")] Duration);

/// A rule as it is written in TOML.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) reap: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) daemon: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) thread_scoped: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) grace: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idle_duplicates: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<ProgramKind>,
}

/// Why a rule is refused.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// A rule needs a name, because events and reports show it.
    #[error("a rule needs a name of 1 to 64 printable characters")]
    Name,
    /// A rule without a pattern would match every process.
    #[error("rule \"{0}\" matches everything: add program, unit or user")]
    Empty(String),
    /// An empty pattern matches nothing.
    #[error("rule \"{rule}\": {key} is empty")]
    EmptyPattern {
        /// The rule.
        rule: String,
        /// The key.
        key: &'static str,
    },
    /// A rule that names an interpreter would match everything that the interpreter runs.
    #[error(
        "rule \"{rule}\": \"{program}\" runs other programs: name the script, module or package that it runs"
    )]
    Interpreter {
        /// The rule.
        rule: String,
        /// The program it names.
        program: String,
    },
    /// A rule with `unit` cannot name a program.
    #[error(
        "rule \"{0}\": a rule with unit or user takes no program: remove one of them; it means what runs there, whatever that is"
    )]
    UnitAndProgram(String),
    /// The name is not that of a service, nor that of a slice.
    #[error(
        "rule \"{rule}\": \"{unit}\" is not a service: unit takes a name such as \"gateway.service\" or \"gateway@*.service\", \
         in [[exempt]] that of a slice, too"
    )]
    Unit {
        /// The rule.
        rule: String,
        /// The name that was given.
        unit: String,
    },
    /// The manager of a unit starts its main process, so no agent can leave it behind.
    #[error("rule \"{0}\": a rule with unit takes no daemon: the unit's manager starts its main process")]
    UnitAndDaemon(String),
    /// Only agents can be ended with their units.
    #[error("rule \"{0}\": reap, daemon, thread_scoped, grace and idle_duplicates are for [[agent]] only")]
    AgentsOnly(String),
    /// A time that nothing can be idle for would end whatever pauses.
    #[error("rule \"{0}\": idle_duplicates is shorter than 1s")]
    IdleDuplicates(String),
    /// Only agents and exemptions are known by their unit.
    #[error("rule \"{0}\": unit is for [[agent]] and [[exempt]] only")]
    NoUnit(String),
    /// Only exemptions are known by their user.
    #[error("rule \"{0}\": user is for [[exempt]] only")]
    NoUser(String),
    /// Only other programs have a kind, and each of them has one.
    #[error(
        "rule \"{0}\": kind is for [[program]], and always needed there: server, launcher, supervisor or multiplexer"
    )]
    Kind(String),
}

impl TryFrom<Written> for Rule {
    type Error = RuleError;

    fn try_from(w: Written) -> Result<Self, RuleError> {
        let name = w.name;
        if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
            return Err(RuleError::Name);
        }
        let keys = [("program", &w.program), ("unit", &w.unit), ("user", &w.user)];
        let is_blank = |text: &String| text.trim().is_empty();
        if keys.iter().all(|(_, value)| value.is_none()) {
            return Err(RuleError::Empty(name));
        }
        if let Some((key, _)) = keys.iter().find(|(_, value)| value.as_ref().is_some_and(is_blank)) {
            return Err(RuleError::EmptyPattern { rule: name, key });
        }
        let program: Vec<&str> = w.program.iter().flat_map(|words| words.split_whitespace()).collect();
        if let Some(first) = program.first().map(|first| base(first))
            && (Interpreter::named(first).is_some() || contains(SHELLS, first))
        {
            return Err(RuleError::Interpreter { rule: name, program: first.to_owned() });
        }
        if (w.unit.is_some() || w.user.is_some()) && w.program.is_some() {
            return Err(RuleError::UnitAndProgram(name));
        }
        if let Some(unit) = &w.unit {
            if w.daemon {
                return Err(RuleError::UnitAndDaemon(name));
            }
            if !matches!(unit.rsplit_once('.'), Some((_, "service" | "slice"))) || unit.contains('/') {
                return Err(RuleError::Unit { rule: name, unit: unit.clone() });
            }
        }
        let idle_duplicates = w.idle_duplicates.map(|Time(time)| time);
        if idle_duplicates.is_some_and(|time| time < SHORTEST_IDLE) {
            return Err(RuleError::IdleDuplicates(name));
        }
        Ok(Self {
            name,
            program: program.into_iter().map(|word| Pattern::new(word.to_owned())).collect(),
            unit: w.unit.map(Pattern::new),
            user: w.user,
            reap: w.reap,
            daemon: w.daemon,
            thread_scoped: w.thread_scoped,
            grace: w.grace.map(|Time(grace)| grace),
            idle_duplicates,
            kind: w.kind,
        })
    }
}

impl From<Rule> for Written {
    fn from(rule: Rule) -> Self {
        let words: Vec<String> = rule.program.into_iter().map(|pattern| pattern.text).collect();
        Self {
            name: rule.name,
            program: (!words.is_empty()).then(|| words.join(" ")),
            unit: rule.unit.map(|pattern| pattern.text),
            user: rule.user,
            reap: rule.reap,
            daemon: rule.daemon,
            thread_scoped: rule.thread_scoped,
            grace: rule.grace.map(Time),
            idle_duplicates: rule.idle_duplicates.map(Time),
            kind: rule.kind,
        }
    }
}

impl Rule {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the unit that it is about; empty if it is about none.
    pub(super) fn unit_text(&self) -> &str {
        self.unit.as_ref().map_or("", |pattern| &pattern.text)
    }

    /// Whether the rule is about a slice.
    pub(super) fn is_about_slice(&self) -> bool {
        matches!(self.unit_text().rsplit_once('.'), Some((_, "slice")))
    }

    /// Whether the rule is about one of these slices.
    pub(super) fn names_slice(&self, slices: &[String]) -> bool {
        self.unit.as_ref().is_some_and(|pattern| slices.iter().any(|slice| pattern.matches(slice)))
    }

    /// Whether the rule is about this unit.
    pub(super) fn names_unit(&self, unit: &Unit) -> bool {
        self.unit.as_ref().is_some_and(|pattern| pattern.matches(&unit.name))
    }

    /// Whether the rule is about a unit or a user and not about a program.
    pub(super) const fn is_about_place(&self) -> bool {
        self.unit.is_some() || self.user.is_some()
    }

    /// Whether it says what only a rule for agents can say.
    pub(super) const fn is_for_agents(&self) -> bool {
        let has_time = self.grace.is_some() || self.idle_duplicates.is_some();
        self.reap || self.daemon || self.thread_scoped || has_time
    }

    /// Whether its agents are ended when their unit has left them behind.
    pub(super) const fn reaps(&self) -> bool {
        self.reap
    }

    /// Whether its agents are meant to outlive whoever started them.
    pub(super) const fn is_daemon(&self) -> bool {
        self.daemon
    }

    /// Whether each server of its agents ends with the thread that started it.
    pub(super) const fn is_thread_scoped(&self) -> bool {
        self.thread_scoped
    }

    /// What such a program is, if that is neither agent nor server.
    pub const fn kind(&self) -> Option<ProgramKind> {
        self.kind
    }

    /// How long the servers of its agents may outlive them, if that is another time than for all.
    pub(super) const fn grace(&self) -> Option<Duration> {
        self.grace
    }

    /// How long a duplicate of its agents must do nothing until it is ended; `None` if it is not.
    pub(super) const fn idle_duplicates(&self) -> Option<Duration> {
        self.idle_duplicates
    }

    pub(super) fn matches(&self, program: &Program<'_>, image: &Image) -> bool {
        let Some((known_as, args)) = self.program.split_first() else { return false };
        known_as.is_of(program, without_deleted(&image.exe))
            && args.len() <= program.args.len()
            && args.iter().zip(program.args).all(|(pattern, arg)| pattern.matches(arg))
    }

    /// The base name of files whose exec this rule may match.
    pub(super) fn file_name(&self) -> Option<&str> {
        let first = self.program.first()?;
        let path = first.literal().unwrap_or_else(|| last_component(&first.text));
        Some(base(path)).filter(|name| !name.is_empty() && !name.contains(['*', '?']))
    }
}

/// The last component of a path pattern.
fn last_component(pattern: &str) -> &str {
    pattern.rsplit_once('/').map_or("", |(_, name)| name)
}

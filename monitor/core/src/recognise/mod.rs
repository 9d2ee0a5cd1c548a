//! Rules that tell agents and MCP servers from what a process runs. Pure: an [`Image`] goes in, a [`Role`]
//! comes out. What is looked at is the program position only (`argv[0]`, the executed file, the script after
//! an interpreter's options, the package after `npx`), never `comm` and never the whole command line.
//!
//! Precedence: rules of the configuration before built-in ones; of each, exempt, multiplexer, server, agent,
//! steward, launcher, shell. Recognition alone ends nothing: a server is one only if its standard input is a
//! wire, an orphan only if its owner is gone.

mod agents;
mod candidates;
mod interpreter;
mod program;
mod rule;
mod runner;
mod servers;
#[cfg(test)]
mod tests;
mod text;
mod trades;

pub use self::rule::{Rule, RuleBook, RuleError, not_agents};
use self::{
    agents::Work,
    program::{Carrier, Program},
    trades::{EXEMPT, LAUNCHERS, MULTIPLEXERS, lists},
};
pub use crate::model::Candidate;
use crate::model::{Image, Unit};

/// What a program is to orphand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// An agent that a rule knows.
    Agent {
        /// The name shown for it, `claude`.
        name: String,
        /// The rule's name.
        rule: String,
    },
    /// An MCP server, if its standard input turns out to be a wire.
    Server {
        /// The name shown for it: package, module or program without path and version.
        name: String,
        /// The rule's name.
        rule: String,
    },
    /// A program that starts another one on its own standard streams: `npm exec`, `uv run`, `timeout`.
    Launcher,
    /// A shell: it may launch a server, it is never an implied agent.
    Shell,
    /// tmux, screen, zellij and the like: what lives in it is nobody's server.
    Multiplexer,
    /// Left alone by rule, with all below it (conmon, or what the configuration exempts).
    Exempt {
        /// The rule's name.
        rule: String,
    },
    /// A program that adopts or hosts others by trade (init, systemd, sshd's listener, containerd-shim): it
    /// is never an implied agent.
    Steward,
    /// Anything else. It becomes an implied agent if it starts an MCP server on pipes of its own.
    Other {
        /// The name to show for it: script or program without path.
        name: String,
    },
}

impl Role {
    /// The name shown, where the rules give one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Agent { name, .. } | Self::Server { name, .. } | Self::Other { name } => Some(name),
            Self::Launcher | Self::Shell | Self::Multiplexer | Self::Exempt { .. } | Self::Steward => None,
        }
    }
}

/// The compiled rules: those built in and those of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    book: RuleBook,
}

impl Rules {
    /// The rules that need no configuration.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// The built-in rules behind those of the configuration.
    pub fn new(book: RuleBook) -> Self {
        Self { book }
    }

    /// The rules that [`Rules::source`] wrote.
    pub fn from_source(source: &str) -> Result<Self, toml::de::Error> {
        RuleBook::from_toml(source).map(Self::new)
    }

    /// The rules of the configuration as TOML, empty if there are none: a trace carries it, so that a replay
    /// recognises what the daemon recognised.
    pub fn source(&self) -> String {
        toml::to_string(&self.book).unwrap_or_default()
    }

    /// What `image` is. Takes one to four microseconds; total over any input.
    pub fn role(&self, image: &Image) -> Role {
        self.role_among(image, &self.book.exempt)
    }

    /// What `image` would be if the configuration exempted nothing: an exempt server is still seen and
    /// accounted for, only never ended.
    pub fn role_but_for_exemption(&self, image: &Image) -> Role {
        self.role_among(image, &[])
    }

    fn role_among(&self, image: &Image, exempt: &[Rule]) -> Role {
        let words = program::words(image);
        let first = Program::parse(&words, 0);
        let second = program::behind(&words, text::without_deleted(&image.exe));
        let configured = |program| self.configured(program, image, exempt);
        if let Some(role) = configured(&first).or_else(|| second.as_ref().and_then(configured)) {
            return role;
        }
        // `cursor-agent --use-system-ca /../index.js mcp list`: the name of the first, the arguments of the second
        let role = builtin_role(&second.as_ref().map_or(first, |s| Program { args: s.args, ..first }));
        let (Some(second), Role::Other { .. }) = (second, &role) else {
            return role;
        };
        let behind = builtin_role(&second);
        if matches!(behind, Role::Other { .. }) { role } else { behind }
    }

    /// Whether `image` is a shell, or what a shell interprets, or a launcher: it is there to run another program on its own
    /// standard streams.
    pub fn only_launches(&self, image: &Image) -> bool {
        let interpreter = text::base(text::without_deleted(&image.exe));
        trades::lists(trades::SHELLS, interpreter) || matches!(self.role(image), Role::Launcher | Role::Shell)
    }

    /// The agent that a rule says is the main process of this unit.
    pub fn unit_agent(&self, unit: &Unit) -> Option<&str> {
        self.book.agent.iter().find(|r| r.names_unit(unit)).map(Rule::name)
    }

    /// Whether there are rules about units.
    pub fn name_units(&self) -> bool {
        self.book.agent.iter().any(Rule::is_for_units)
    }

    /// Whether agents of this name are to be ended when their unit left them behind.
    pub fn reap_agent(&self, name: &str) -> bool {
        self.book.agent.iter().any(|r| r.reaps() && r.name() == name)
    }

    /// The names whose exec the kernel side has to report, sorted. Names that contain `mcp` are reported
    /// anyway.
    pub fn candidates(&self) -> Vec<Candidate> {
        candidates::of(&self.book)
    }

    /// What the rules of the configuration say.
    fn configured(&self, program: &Program<'_>, image: &Image, exempt: &[Rule]) -> Option<Role> {
        if self.book.is_empty() {
            return None;
        }
        let first =
            |rules: &[Rule]| rules.iter().find(|r| r.matches(program, image)).map(|r| r.name().to_owned());
        let book = &self.book;
        if let Some(rule) = first(exempt) {
            return Some(Role::Exempt { rule });
        }
        if first(&book.multiplexer).is_some() {
            return Some(Role::Multiplexer);
        }
        if let Some(rule) = first(&book.server) {
            return Some(Role::Server { name: rule.clone(), rule });
        }
        if let Some(rule) = first(&book.agent) {
            return Some(Role::Agent { name: rule.clone(), rule });
        }
        if first(&book.steward).is_some() {
            return Some(Role::Steward);
        }
        first(&book.launcher).map(|_| Role::Launcher)
    }
}

/// What the built-in rules say.
fn builtin_role(program: &Program<'_>) -> Role {
    let own = matches!(program.carrier, Carrier::Itself | Carrier::Interpreter);
    if own && lists(EXEMPT, program.name) {
        return Role::Exempt { rule: program.name.to_owned() };
    }
    if own && lists(MULTIPLEXERS, program.name) {
        return Role::Multiplexer;
    }
    if let Some(rule) = servers::by_name(program) {
        return Role::Server { name: servers::display(program), rule: rule.to_owned() };
    }
    let other = || match program.carrier {
        Carrier::Itself | Carrier::Interpreter => Role::Other { name: servers::title(program) },
        Carrier::Shell => Role::Shell,
        Carrier::Runner | Carrier::Container | Carrier::Wrapper => Role::Launcher,
    };
    let serves = || Role::Server { name: servers::display(program), rule: servers::ARGUMENTS.to_owned() };
    if let Some(agent) = agents::find(program) {
        return match agent.work(program) {
            Work::Agent => Role::Agent { name: agent.name.to_owned(), rule: agent.name.to_owned() },
            Work::Serves => serves(),
            Work::Manages => other(),
        };
    }
    if servers::by_arguments(program) {
        return serves();
    }
    if own && is_steward(program) {
        return Role::Steward;
    }
    other()
}

/// Whether the program keeps house for others; pm2's containers are the programs they run.
fn is_steward(program: &Program<'_>) -> bool {
    // a script's extension stays: somebody's own init.py is no init
    let name = program.name;
    let packaged =
        program.package.is_some_and(|p| lists(trades::STEWARDS, p)) && !name.starts_with("ProcessContainer");
    !lists(LAUNCHERS, name) && (trades::is_steward(name) || name == "PM2" || packaged)
}

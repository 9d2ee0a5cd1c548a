//! Rules that recognise agents and MCP servers by what a process runs.
//!
//! Pure: an [`Image`] goes in, a [`Role`] comes out. Only the program position counts (`argv[0]`, the
//! executable, the script after an interpreter's options, the package after `npx`), never `comm` and never
//! the whole command line.
//!
//! Rules of the configuration come before built-in ones. Within each the order is: exempt, multiplexer,
//! server, agent, supervisor, launcher, shell. Recognition alone ends nothing: a process is a server only if its
//! standard input is a wire, and an orphan only if its owner is gone.
//!
//! Most of it is data. To add
//! - a launcher, shell, multiplexer, supervisor, browser or tool: its name in `known_programs`;
//! - an interpreter or package runner, or an option of one: a row in `carriers::ROWS`, which says where in the command
//!   line the program stands;
//! - an agent, or one of its commands: a row in `agents::AGENTS`;
//! - a server without `mcp` in its name, or arguments that make a program one: `servers`;
//! - the client of a container engine, or an option of one: `container`;
//! - a key under which agents list their servers: `declared`;
//!
//! and a line in the tables of `tests/`, which show what each command line is taken for.

mod agents;
mod assignment;
mod candidates;
mod carriers;
mod container;
mod declared;
mod engaged;
mod exemption;
mod first_message;
mod known_programs;
mod nothing;
mod program;
mod project;
mod rule;
mod servers;
mod steps;
#[cfg(test)]
mod tests;
mod text;

pub use self::assignment::{is_same_image, own_container};
pub use self::container::{
    container_client, forwards_to_engine, handed_on_by_client, is_container_id, keeps_container,
    started_container, works_for_podman, works_through_client,
};
pub use self::declared::{Declarations, Notation, is_bridged, told_settings};
pub use self::engaged::{
    entry_names_port, entry_names_service, fork_server_listener, is_at_a_chosen_port, is_browser, is_chosen,
    is_debugger, is_nohup, is_opener, is_shell_of_a_person, is_spawn_helper, is_spawn_server,
    is_told_to_be_driven, is_told_to_serve,
};
pub use self::first_message::{PROTOCOL, first_message, harmless};
pub use self::nothing::Known;
pub use self::rule::{ProgramKind, Rule, RuleError, agents, exemptions, programs};
pub use self::steps::{After, after, text_of_shell};
use self::{
    agents::Work,
    known_programs::{EXEMPT, LAUNCHERS, MULTIPLEXERS, SHELLS, contains},
    program::{Carrier, Program, command_name},
};
pub use crate::model::Candidate;
use crate::model::{Image, Unit};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// An agent that a rule recognises.
    Agent {
        /// The name of the rule, which is shown for it, for example `claude`.
        name: String,
    },
    /// An MCP server, provided that its standard input is a wire.
    Server {
        /// The name that is shown for it: package, module or program without path and version.
        name: String,
        rule: String,
    },
    /// A program that starts another one on its own standard streams: `npm exec`, `uv run`, `timeout`.
    Launcher,
    /// A shell. It may launch a server, and it is never an implied agent.
    Shell,
    /// tmux, screen, zellij and others. What runs in a multiplexer belongs to no server.
    Multiplexer,
    /// Never ended, and neither is anything below it: conmon, and what the configuration exempts.
    Exempt { rule: String },
    /// A program that hosts or adopts others (init, systemd, containerd-shim). It is never an implied agent. The
    /// configuration calls it a supervisor.
    ServiceManager,
    /// Any other program. It becomes an implied agent if it starts an MCP server on pipes that it made.
    Other {
        /// The name that is shown for it: script or program without path.
        name: String,
    },
}

impl Role {
    /// The name shown, where the rules give one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Agent { name, .. } | Self::Server { name, .. } | Self::Other { name } => Some(name),
            _ => None,
        }
    }

    /// Whether what it leaves behind is left alone.
    pub const fn leaves_for_good(&self) -> bool {
        matches!(self, Self::Exempt { .. } | Self::Multiplexer | Self::ServiceManager)
    }
}

/// The built-in rules, and those of the configuration by table. Within a table, the first rule that matches counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Never ended, and neither is anything below them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "exemptions")]
    pub exempt: Vec<Rule>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "agents")]
    pub agent: Vec<Rule>,
    /// Other programs, servers among them, by their kind.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "programs")]
    pub program: Vec<Rule>,
}

impl Rules {
    /// Parses what [`Rules::source`] wrote.
    pub fn from_source(source: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(source)
    }

    pub fn is_empty(&self) -> bool {
        self.tables().iter().all(|(_, rules)| rules.is_empty())
    }

    /// The tables with their names, in the order in which they are tried; multiplexers and servers are tried second.
    pub fn tables(&self) -> [(&'static str, &[Rule]); 3] {
        let Self { exempt, agent, program } = self;
        [("exempt", exempt), ("agent", agent), ("program", program)]
    }

    /// The rules of the configuration as TOML; empty if there are none. A trace contains it, so that a replay
    /// recognises the same.
    pub fn source(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// The role of `image`. Takes one to four microseconds; total over any input.
    pub fn role(&self, image: &Image) -> Role {
        self.role_among(image, &self.exempt)
    }

    /// The role of `image` if the configuration exempted nothing. An exempt server is still reported and
    /// counted, but never ended.
    pub fn role_but_for_exemption(&self, image: &Image) -> Role {
        self.role_among(image, &[])
    }

    /// Whether it may be an agent that is spoken to over wires, or a server, or run one on its own streams: by a rule, by what
    /// was said to it, or by what is stored.
    pub fn may_have_wires(&self, image: &Image) -> bool {
        !matches!(self.role_but_for_exemption(image), Role::Multiplexer | Role::Exempt { .. })
    }

    fn role_among(&self, image: &Image, exempt: &[Rule]) -> Role {
        let words = program::words(image);
        let (first, second) = Program::find(&words, image);
        let configured = |program| self.configured(program, image, exempt);
        if let Some(role) = configured(&first).or_else(|| second.as_ref().and_then(configured)) {
            return role;
        }
        // `cursor-agent --use-system-ca /../index.js mcp list`: the first has the name, the second the
        // arguments
        let role = builtin_role(&second.as_ref().map_or(first, |s| Program { args: s.args, ..first }));
        let (Some(second), Role::Other { .. }) = (second, &role) else {
            return role;
        };
        let behind = builtin_role(&second);
        if matches!(behind, Role::Other { .. }) { role } else { behind }
    }

    /// Whether no more than a name makes this a server: no rule of the configuration, no argument that only servers
    /// have, no package or name that published servers have. A job may have such a name, too.
    pub fn is_only_named(&self, image: &Image) -> bool {
        let named = |role: &Role| matches!(role, Role::Server { rule, .. } if rule != servers::ARGUMENTS);
        named(&self.role_but_for_exemption(image))
            && !may_be(image, |program| {
                self.configured(program, image, &[]).is_some()
                    || servers::by_arguments(program)
                    || (servers::by_name(program).is_some() && servers::is_certain(program))
            })
    }

    /// The name that is shown for a server that no rule knows: script, package or program without path.
    pub fn title(&self, image: &Image) -> String {
        let words = program::words(image);
        let (first, second) = Program::find(&words, image);
        servers::title(&second.unwrap_or(first))
    }

    /// Whether `image` only runs another program on its own standard streams: a shell, a shell script or a
    /// launcher.
    pub fn only_launches(&self, image: &Image) -> bool {
        is_a_launcher(image, &self.role(image))
    }

    /// Whether `image` is a launcher, also one that is a shell script (Debian's xvfb-run).
    pub fn is_a_launcher_by_name(&self, image: &Image) -> bool {
        let is_script = |program: &Program<'_>| {
            program.carrier == Carrier::Shell && contains(LAUNCHERS, command_name(program.path))
        };
        self.role(image) == Role::Launcher || may_be(image, is_script)
    }

    /// Whether `image` is the first process of a host, a container or a login: what it starts is everything there.
    pub fn starts_everything(&self, image: &Image) -> bool {
        self.role(image) == Role::ServiceManager && matches!(text::exe_name(image), "systemd" | "init")
    }

    /// The agent that, according to a rule, is the main process of this unit.
    pub fn unit_agent(&self, unit: &Unit) -> Option<&str> {
        self.agent.iter().find(|r| r.names_unit(&unit.name)).map(|rule| &*rule.name)
    }

    pub fn name_units(&self) -> bool {
        self.agent.iter().any(Rule::is_about_place)
    }

    /// Whether agents of this name are ended when their unit has left them behind.
    pub fn reap_agent(&self, name: &str) -> bool {
        self.agent.iter().any(|r| r.reap && r.name == name)
    }

    /// Whether an agent is a daemon by design: it is meant to outlive whoever started it. A rule of the configuration
    /// says so, or the built-in rules know its arguments. `wired`: its standard input is a wire.
    pub fn is_daemon(&self, image: &Image, wired: bool) -> bool {
        may_be(image, |program| {
            let mut by_rule = self.agent.iter().filter(|rule| rule.matches(program, image));
            by_rule.next().is_some_and(|rule| rule.daemon)
                || agents::find(program).is_some_and(|agent| agent.is_daemon(program, wired))
        })
    }

    /// The shortest time after which an idle duplicate is ended, of all rules.
    pub fn shortest_idle_duplicates(&self) -> Option<std::time::Duration> {
        self.agent.iter().filter_map(Rule::idle_duplicates).min()
    }

    /// The rule that recognises this agent, known by this name: by its unit, or else by what it runs. `None` if it is
    /// built in, or if no rule has this name.
    pub fn rule_of(&self, name: &str, image: Option<&Image>, unit: Option<&Unit>) -> Option<&Rule> {
        let is_it = |rule: &&Rule| rule.name == name;
        self.agent.iter().find(is_it)?;
        let of_unit = unit.and_then(|unit| self.agent.iter().find(|rule| rule.names_unit(&unit.name)));
        let Some(image) = image.filter(|_| !of_unit.is_some_and(|rule| is_it(&rule))) else {
            return of_unit.filter(is_it);
        };
        let by_image = |rule: &&Rule| may_be(image, |program| rule.matches(program, image));
        self.agent.iter().find(by_image).filter(is_it)
    }

    /// How long servers may outlive an agent of this name, if a rule of this name says so.
    pub fn grace_of(&self, name: &str) -> Option<std::time::Duration> {
        self.agent.iter().filter(|rule| rule.name == name).find_map(Rule::grace)
    }

    fn configured(&self, program: &Program<'_>, image: &Image, exempt: &[Rule]) -> Option<Role> {
        if self.is_empty() {
            return None;
        }
        let matches = |rule: &&Rule| rule.matches(program, image);
        let first = |rules: &[Rule]| rules.iter().find(matches).map(|rule| rule.name.clone());
        let of_kind = |kind| self.program.iter().filter(move |rule| rule.kind == Some(kind)).find(matches);
        let kind = |kind| of_kind(kind).is_some();
        if let Some(rule) = first(exempt) {
            return Some(Role::Exempt { rule });
        }
        if kind(ProgramKind::Multiplexer) {
            return Some(Role::Multiplexer);
        }
        if let Some(rule) = of_kind(ProgramKind::Server).map(|rule| rule.name.clone()) {
            return Some(Role::Server { name: rule.clone(), rule });
        }
        if let Some(name) = first(&self.agent) {
            return Some(Role::Agent { name });
        }
        if kind(ProgramKind::Supervisor) {
            return Some(Role::ServiceManager);
        }
        kind(ProgramKind::Launcher).then_some(Role::Launcher)
    }
}

/// Whether this holds of one of the programs that a command line may mean.
fn may_be(image: &Image, is_such: impl FnMut(&Program<'_>) -> bool) -> bool {
    let words = program::words(image);
    let (first, second) = Program::find(&words, image);
    [Some(first), second].iter().flatten().any(is_such)
}

/// Whether `image`, which has this role, does its work itself, and runs no other program on its own standard streams in its
/// place, as `npx` does, and docker-compose, whose clients talk. A shell does if its script is a server by its name.
pub fn runs_itself(image: &Image, role: &Role) -> bool {
    match Program::find(&program::words(image), image).0.carrier {
        Carrier::Itself | Carrier::Interpreter => {
            !is_a_launcher(image, role) && container_client(image).is_none()
        }
        Carrier::Shell => matches!(role, Role::Server { .. }),
        Carrier::Runner | Carrier::Container | Carrier::Wrapper => false,
    }
}

fn is_a_launcher(image: &Image, role: &Role) -> bool {
    is_in_a_shell(image) || matches!(role, Role::Launcher | Role::Shell)
}

/// Whether a shell works it off, whatever it is by its name.
pub fn is_in_a_shell(image: &Image) -> bool {
    contains(SHELLS, text::exe_name(image))
}

/// Whether both run programs of one package, or the same program.
pub fn are_of_one_package(one: &Image, other: &Image) -> bool {
    let words = [program::words(one), program::words(other)];
    let [one, other] = [Program::find(&words[0], one).0, Program::find(&words[1], other).0];
    // The modules of a Python package are called by it (`python -m foo_mcp.ingest`).
    let package = |program: &Program<'_>| {
        program.package.or_else(|| program.module?.split('.').next()).map(str::to_owned)
    };
    match (package(&one), package(&other)) {
        (None, None) => one.path == other.path,
        (one, other) => one == other,
    }
}

/// The role according to the built-in rules.
fn builtin_role(program: &Program<'_>) -> Role {
    let own = matches!(program.carrier, Carrier::Itself | Carrier::Interpreter);
    if own && contains(EXEMPT, program.name) {
        return Role::Exempt { rule: program.name.to_owned() };
    }
    if own && contains(MULTIPLEXERS, program.name) {
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
            Work::Agent => Role::Agent { name: agent.name.to_owned() },
            Work::Serves => serves(),
            Work::Manages => other(),
        };
    }
    if servers::by_arguments(program) {
        return serves();
    }
    if own && is_steward(program) {
        return Role::ServiceManager;
    }
    other()
}

/// Whether the program hosts or adopts others. For pm2's containers, the program that they run decides.
fn is_steward(program: &Program<'_>) -> bool {
    // the extension of a script stays: a script called init.py is not an init system
    let name = program.name;
    let packaged = program.package.is_some_and(|p| contains(known_programs::STEWARDS, p))
        && !name.starts_with("ProcessContainer");
    !contains(LAUNCHERS, name) && (known_programs::is_steward(name) || name == "PM2" || packaged)
}

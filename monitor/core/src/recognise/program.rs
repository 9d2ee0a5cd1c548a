//! Finds the program position of a command line: what a process really runs, behind interpreters, package
//! runners and titles. Total over any input, because a process may call itself anything.
//!
//! Which word it is, is told by the rows of [`super::carriers`].

use super::{
    carriers::{Position, Row},
    container,
    known_programs::{CONTAINER_CLIENTS, LAUNCHERS, contains},
    text::{base, exe_name, package_name, package_of_path, program_name, stem, unscoped, without_deleted},
};
use crate::model::Image;

/// How deeply runners may be nested (`corepack pnpm dlx`, `uv run npx`). Real commands need fewer levels.
const DEPTH: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// The process executes the program's own file.
    Itself,
    /// The process is an interpreter, and the program is its script.
    Interpreter,
    /// The process is a shell that runs a script file. With a command string, the program is the shell
    /// itself.
    Shell,
    /// The process is a package runner (npx, uvx, `pnpm exec`); the program is a package or a command of one.
    Runner,
    /// The process is a container client; the program is an image.
    Container,
    /// The process runs another command, which is not examined.
    Wrapper,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Program<'w> {
    pub(super) carrier: Carrier,
    /// Base name of the program: executable, script file, command of a package, or image.
    pub(super) name: &'w str,
    /// The name as it was written.
    pub(super) path: &'w str,
    /// The package it belongs to, with scope and without version.
    pub(super) package: Option<&'w str>,
    /// The module of `python -m`.
    pub(super) module: Option<&'w str>,
    /// The arguments after the program position.
    pub(super) args: &'w [&'w str],
}

impl<'w> Program<'w> {
    pub(super) fn new(carrier: Carrier, path: &'w str, args: &'w [&'w str]) -> Self {
        Self { carrier, name: program_name(path), path, package: package_of_path(path), module: None, args }
    }

    fn of_package(carrier: Carrier, package: &'w str, command: &'w str, args: &'w [&'w str]) -> Self {
        let package = (!package.is_empty()).then_some(package);
        Self { package, ..Self::new(carrier, command, args) }
    }

    pub(super) fn stem(&self) -> &'w str {
        match self.carrier {
            Carrier::Interpreter | Carrier::Shell | Carrier::Runner => stem(self.name),
            Carrier::Itself | Carrier::Container | Carrier::Wrapper => self.name,
        }
    }

    /// The programs that the words of an image may mean: the one in program position, and what the executable runs, if that
    /// is an interpreter that was started under another name (`exec -a`).
    pub(super) fn find(words: &'w [&'w str], image: &Image) -> (Self, Option<Self>) {
        let behind = || {
            let [head, _, ..] = words else { return None };
            let row = interpreter(exe_name(image))?;
            if interpreter(command_name(head)).is_some() {
                return None;
            }
            let program = Self::carried(row, words, 0);
            (program.carrier == Carrier::Interpreter && program.path.contains('/')).then_some(program)
        };
        (Self::parse(words, 0), behind())
    }

    /// Finds the program that the command line `words` runs.
    pub(super) fn parse(words: &'w [&'w str], depth: u8) -> Self {
        let [head, args @ ..] = words else {
            return Self::new(Carrier::Itself, "", &[]);
        };
        let name = command_name(head);
        if depth >= DEPTH || contains(LAUNCHERS, name) {
            Self::new(Carrier::Wrapper, head, args)
        } else if contains(CONTAINER_CLIENTS, name) {
            container::program(head, args, depth)
        } else if let Some(row) = Row::named(name) {
            Self::carried(row, words, depth)
        } else {
            Self::new(Carrier::Itself, head, args)
        }
    }

    /// Finds the program that the one with this row, at the start of `words`, runs.
    fn carried(row: &Row, words: &'w [&'w str], depth: u8) -> Self {
        let [head, args @ ..] = words else {
            return Self::new(Carrier::Itself, "", &[]);
        };
        let wrapper = Self::new(Carrier::Wrapper, head, args);
        let carrier = row.carrier;
        match row.find(args) {
            Position::Script(line @ [path, rest @ ..]) => {
                let is_interpreter = carrier == Carrier::Interpreter;
                // `node .../tsx/dist/cli.mjs FILE`
                if is_interpreter
                    && depth == 0
                    && matches!(package_of_path(path), Some("tsx" | "ts-node" | "vite-node"))
                {
                    return Self::carried(Row::named("node").unwrap_or(row), line, depth + 1);
                }
                // npx, tsx, conda, bundle and others are scripts, too: the program is what they run.
                let name = command_name(path);
                let inner = Row::named(name).is_some_and(|inner| inner.carrier != Carrier::Shell);
                if is_interpreter && (inner || contains(LAUNCHERS, name)) {
                    return Self::parse(line, depth + 1);
                }
                Self::new(carrier, path, rest)
            }
            Position::Module(module, _) if contains(LAUNCHERS, module) => wrapper,
            Position::Module(module, args) => {
                let name = module.split('.').next().unwrap_or(module);
                Self { carrier, name, path: module, package: None, module: Some(module), args }
            }
            Position::Specifier(specifier, rest) => {
                let package = package_name(specifier);
                Self::of_package(carrier, package, package, rest)
            }
            Position::Package(package, line @ [word, rest @ ..]) => {
                let name = unscoped(package_name(word));
                // `npx tsx FILE`, `uvx --from X python -m MODULE`
                if let Some(inner) = interpreter(name) {
                    let program = Self::carried(inner, line, depth + 1);
                    let is_script = program.carrier == Carrier::Interpreter;
                    return if is_script { Self { carrier: Carrier::Runner, ..program } } else { wrapper };
                }
                Self::of_package(Carrier::Runner, package_name(package.unwrap_or(word)), name, rest)
            }
            Position::Line(line) => Self::inner(line, depth).unwrap_or(wrapper),
            Position::Nowhere if carrier == Carrier::Interpreter => {
                Self { carrier: Carrier::Itself, ..wrapper }
            }
            Position::Nowhere if carrier == Carrier::Shell => Self { carrier, ..wrapper },
            Position::Nowhere | Position::Elsewhere | Position::Script([]) | Position::Package(_, []) => {
                wrapper
            }
        }
    }

    /// The program of a command line within the arguments of another program; `None` if it is not examined.
    pub(super) fn inner(line: &'w [&'w str], depth: u8) -> Option<Self> {
        let program = Self::parse(line, depth + 1);
        let is_known = !line.is_empty() && !matches!(program.carrier, Carrier::Shell | Carrier::Wrapper);
        is_known.then_some(Self { carrier: Carrier::Runner, ..program })
    }
}

pub(super) fn interpreter(name: &str) -> Option<&'static Row> {
    Row::named(name).filter(|row| row.carrier == Carrier::Interpreter)
}

/// The words of an image's command line. If the program overwrote its argv with a title, the words of the
/// title.
pub(super) fn words(image: &Image) -> Vec<&str> {
    let exe = without_deleted(&image.exe);
    let used = image.argv.iter().rposition(|a| !a.is_empty()).map_or(0, |last| last + 1);
    // A lone `argv[0]` may be a title, which the program wrote over its arguments, or a path with blanks.
    let is_title =
        |word: &str| word.trim().contains(char::is_whitespace) && word != exe && base(word) != base(exe);
    match image.argv.get(..used).unwrap_or_default() {
        [] => vec![exe],
        [title] if is_title(title) => {
            let mut words: Vec<&str> = title.split_whitespace().collect();
            // `tmux: server`, `sshd: user@pts/0`
            if let Some(first) = words.first_mut() {
                *first = first.trim_end_matches(':');
            }
            words
        }
        [first, rest @ ..] => {
            let first = if first.trim().is_empty() { exe } else { first };
            std::iter::once(first).chain(rest.iter().map(String::as_str)).collect()
        }
    }
}

/// The base name of the command `head`. The dash of a login shell (`-bash`) is removed, and the script of a
/// package manager (`npm-cli.js`, `pnpm.cjs`, `yarn-4.1.0.cjs`) counts as the manager.
pub(super) fn command_name(head: &str) -> &str {
    let name = program_name(head);
    let name = name.strip_prefix('-').filter(|n| !n.is_empty()).unwrap_or(name);
    let stem = stem(name);
    if stem == name {
        return name;
    }
    match stem {
        "npm-cli" => "npm",
        "npx-cli" => "npx",
        "pnpm" | "pnpx" | "yarn" | "corepack" | "bunx" | "npm" | "npx" => stem,
        _ if stem.strip_prefix("yarn-").is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())) => {
            "yarn"
        }
        _ => name,
    }
}

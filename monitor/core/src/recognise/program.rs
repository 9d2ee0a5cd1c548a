//! Finds the program position of a command line: what a process really runs, behind interpreters, package
//! runners and titles. Total over any input, because a process may call itself anything.

use super::{
    interpreter::{self, Interpreter},
    known_programs::{LAUNCHERS, SHELLS, contains},
    runner,
    text::{base, package_of_path, program_name, stem, without_deleted},
};
use crate::model::Image;

/// How deeply runners may be nested (`corepack pnpm dlx`, `uv run npx`). Real commands need fewer levels.
const DEPTH: u8 = 5;

/// How the process runs the program.
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

/// What is in program position.
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
    /// A program that is named by `path`.
    pub(super) fn new(carrier: Carrier, path: &'w str, args: &'w [&'w str]) -> Self {
        Self { carrier, name: program_name(path), path, package: package_of_path(path), module: None, args }
    }

    /// A program that is named by its package and command.
    pub(super) fn of_package(package: &'w str, command: &'w str, args: &'w [&'w str]) -> Self {
        let package = (!package.is_empty()).then_some(package);
        Self { package, ..Self::new(Carrier::Runner, command, args) }
    }

    /// The name without a script's extension.
    pub(super) fn stem(&self) -> &'w str {
        match self.carrier {
            Carrier::Interpreter | Carrier::Shell | Carrier::Runner => stem(self.name),
            Carrier::Itself | Carrier::Container | Carrier::Wrapper => self.name,
        }
    }

    /// Finds the program that the command line `words` runs.
    pub(super) fn parse(words: &'w [&'w str], depth: u8) -> Self {
        let [head, args @ ..] = words else {
            return Self::new(Carrier::Itself, "", &[]);
        };
        let name = command_name(head);
        if depth >= DEPTH {
            return Self::new(Carrier::Wrapper, head, args);
        }
        if contains(SHELLS, name) {
            return shell(head, args);
        }
        if contains(LAUNCHERS, name) {
            return Self::new(Carrier::Wrapper, head, args);
        }
        if let Some(program) = runner::parse(name, words, depth) {
            return program;
        }
        match Interpreter::named(name) {
            Some(interpreter) => interpreter::parse(interpreter, words, depth),
            None => Self::new(Carrier::Itself, head, args),
        }
    }
}

/// The words of an image's command line. If the program overwrote its argv with a title, the words of the
/// title.
pub(super) fn words(image: &Image) -> Vec<&str> {
    let exe = without_deleted(&image.exe);
    let used = image.argv.iter().rposition(|a| !a.is_empty()).map_or(0, |last| last + 1);
    let argv = image.argv.get(..used).unwrap_or_default();
    match argv {
        [] => vec![exe],
        [title] if is_title(title, exe) => {
            let mut words: Vec<&str> = title.split_whitespace().collect();
            // `tmux: server`, `sshd: user@pts/0`
            if let Some(first) = words.first_mut() {
                *first = first.trim_end_matches(':');
            }
            words
        }
        [first, rest @ ..] => {
            let mut words = Vec::with_capacity(argv.len());
            words.push(if first.trim().is_empty() { exe } else { first.as_str() });
            words.extend(rest.iter().map(String::as_str));
            words
        }
    }
}

/// Whether a lone `argv[0]` is a title, which the program wrote over its arguments, and not a path with
/// blanks.
fn is_title(word: &str, exe: &str) -> bool {
    word.trim().contains(char::is_whitespace) && word != exe && base(word) != base(exe)
}

/// Finds what an interpreter runs that was started under another name (`exec -a`). [`Program::parse`]
/// examines the name.
pub(super) fn behind<'w>(words: &'w [&'w str], exe: &str) -> Option<Program<'w>> {
    let [head, _, ..] = words else { return None };
    let interpreter = Interpreter::named(base(exe))?;
    if Interpreter::named(command_name(head)).is_some() {
        return None;
    }
    let program = interpreter::parse(interpreter, words, 0);
    (program.carrier == Carrier::Interpreter && program.path.contains('/')).then_some(program)
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

/// Options of shells that take a value.
const SHELL_VALUED: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file", "-C", "--init-command"];

/// A shell: the script file that it runs, otherwise the shell itself.
fn shell<'w>(head: &'w str, args: &'w [&'w str]) -> Program<'w> {
    let itself = Program::new(Carrier::Shell, head, args);
    if matches!(base(head), "busybox" | "toybox") {
        return itself;
    }
    let script = skip_options(args, SHELL_VALUED);
    let options = args.get(..args.len() - script.len()).unwrap_or_default();
    let takes_command = |o: &&str| {
        *o == "--command" || (!o.starts_with("--") && o.starts_with('-') && o.contains(['c', 's']))
    };
    match script {
        [file, rest @ ..] if !options.iter().any(takes_command) => {
            Program { args: rest, ..Program::new(Carrier::Shell, file, rest) }
        }
        _ => itself,
    }
}

/// Skips leading options; `valued` are those whose value is a separate word.
pub(super) fn skip_options<'w>(mut words: &'w [&'w str], valued: &[&str]) -> &'w [&'w str] {
    while let [word, rest @ ..] = words {
        if *word == "--" {
            return rest;
        }
        if !word.starts_with('-') && !word.starts_with('+') || word.len() == 1 {
            break;
        }
        words = match rest {
            [_, behind @ ..] if valued.contains(word) => behind,
            _ => rest,
        };
    }
    words
}

/// The value of one of these options among the leading options: `--name value` or `--name=value`.
pub(super) fn option_value<'w>(options: &[&'w str], names: &[&str]) -> Option<&'w str> {
    options.iter().enumerate().find_map(|(at, option)| {
        if names.contains(option) {
            return options.get(at + 1).copied();
        }
        option.split_once('=').filter(|(name, _)| names.contains(name)).map(|(_, value)| value)
    })
}

//! Tables of command lines from real processes and from users' configurations, with their roles.
//!
//! A line is `words => role`. Words with blanks are in single quotes. `exe: PATH` in front gives the
//! executable if it is not the first word.

use super::{Role, Rules};
use crate::model::{Image, redact};

mod agents;
mod candidates;
mod others;
mod properties;
mod rules;
mod servers;

/// The words of a line, split as a shell does.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                begun = true;
            }
            c if c.is_whitespace() && !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    assert!(!quoted, "unbalanced quote in {line}");
    if begun {
        words.push(word);
    }
    words
}

fn image(line: &str) -> Image {
    let (exe, line) = match line.strip_prefix("exe: ") {
        Some(rest) => {
            rest.split_once(' ').map(|(exe, line)| (exe.to_owned(), line)).unwrap_or((rest.to_owned(), ""))
        }
        None => (String::new(), line),
    };
    let argv = split(line);
    let exe = if exe.is_empty() { argv.first().cloned().unwrap_or_default() } else { exe };
    Image { exe, argv, argv_truncated: false }
}

fn told(role: &Role) -> String {
    match role {
        Role::Agent { name, .. } => format!("agent {name}"),
        Role::Server { name, rule } => format!("server {name} by {rule}"),
        Role::Other { name } => format!("other {name}"),
        Role::Launcher => "launcher".into(),
        Role::Shell => "shell".into(),
        Role::Multiplexer => "multiplexer".into(),
        Role::Exempt { rule } => format!("exempt by {rule}"),
        Role::ServiceManager => "steward".into(),
    }
}

/// Compares a table with the result of `rules`, and reports all differences at once.
fn check_with(rules: &Rules, table: &str) {
    let mut wrong = Vec::new();
    let mut lines = 0;
    for line in table.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (command, expected) = line.rsplit_once(" => ").unwrap_or_else(|| panic!("no role in {line}"));
        let found = told(&rules.role(&image(command.trim())));
        if found != expected.trim() {
            wrong.push(format!("{command}\n    expected {expected}\n    found    {found}"));
        }
        lines += 1;
    }
    assert!(lines > 0);
    assert!(wrong.is_empty(), "{} of {lines} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn check(table: &str) {
    check_with(&Rules::default(), table);
    check_as_shown(table);
}

/// A replay has the arguments as they are shown: what a program is, and by which rule, is the same by them. The name of
/// a server may be masked.
fn check_as_shown(table: &str) {
    let rules = Rules::default();
    let kind = |image: &Image| match rules.role(image) {
        Role::Server { rule, .. } => format!("server by {rule}"),
        role => told(&role).split(' ').next().unwrap_or_default().to_owned(),
    };
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let real = image(line.rsplit_once(" => ").unwrap().0.trim());
        let shown = Image { argv: redact::argv(&real.argv), ..real.clone() };
        if kind(&real) != kind(&shown) {
            wrong.push(format!("{line}\n    shown as {:?}: {}", shown.argv, kind(&shown)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

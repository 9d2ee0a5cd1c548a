//! Programs that work off steps: what comes next when the one that they wait for has ended.

use super::{
    carriers::Row,
    is_in_a_shell,
    known_programs::{SHELLS, contains},
    program::{Carrier, command_name, words},
    text::base,
};
use crate::model::Image;

/// What a program does when another one that it waits for has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// What is in a file nobody reads; and what a shell started with `&` it may wait for.
    Unknown,
    /// It goes on with commands of its own.
    Commands,
}

/// What `image` does when `program` has ended: a shell works off a script, or the commands behind that program, and a runner of
/// tasks what comes after the task.
pub fn after(image: &Image, program: Option<&Image>) -> After {
    if works_off_tasks(image) {
        return After::Commands;
    }
    if !is_in_a_shell(image) {
        return After::Nothing;
    }
    match text_of_shell(image) {
        None if has_text(image).0 => After::Commands,
        None => After::Unknown,
        Some(text) if is_followed(text) => After::Commands,
        Some(text) if text.contains(" & ") => After::Unknown,
        Some(text) if !is_last(text, program) => After::Commands,
        Some(_) => After::Nothing,
    }
}

/// Whether commands of a shell may come after another has ended: `site & server; kill $!`.
fn is_followed(text: &str) -> bool {
    let has_list_behind = text.rsplit_once(" & ").is_some_and(|(_, rest)| rest.contains("&&"));
    has_list_behind || [";", "\n", "||", "trap"].iter().any(|sign| text.contains(sign))
}

/// Whether the last of these commands (`cd x && server`) runs this program.
fn is_last(text: &str, program: Option<&Image>) -> bool {
    let Some((_, last)) = text.rsplit_once("&&") else { return true };
    let names = program.into_iter().flat_map(|image| image.argv.iter().take(2));
    names.map(|word| base(word)).any(|name| !name.is_empty() && last.contains(name))
}

/// Whether it runs tasks of a project, of which each may have one behind it (`postmcp`, of `mcp`).
fn works_off_tasks(image: &Image) -> bool {
    const RUNNERS: &[&str] =
        &["expect", "hatch", "just", "make", "mise", "nr", "pdm", "pixi", "poe", "rtx", "rye", "xargs"];
    let words = words(image);
    // A package manager that runs no package: a script of the project. .NET builds and runs, and does nothing after that.
    let runs_task = |name: &str, arguments: &[&str]| {
        Row::named(name).is_some_and(|row| {
            (row.carrier == Carrier::Runner || matches!(name, "bun" | "deno")) && row.runs_task(arguments)
        })
    };
    (0..2).any(|at| {
        let (name, rest) = (words.get(at).map(|word| command_name(word)), words.get(at + 1..));
        let rest = rest.unwrap_or_default();
        name.is_some_and(|name| contains(RUNNERS, name) || runs_task(name, rest))
    })
}

/// The commands of a shell, if all of them are known.
pub fn text_of_shell(image: &Image) -> Option<&String> {
    let (has_text, operand) = has_text(image);
    operand.filter(|_| has_text && !image.argv_truncated)
}

fn is_text_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

/// Whether a shell is given its commands (`-c`, also among others: `-euxc`), and its first word that is no option.
fn has_text(image: &Image) -> (bool, Option<&String>) {
    let mut has_text = false;
    let mut words = image.argv.iter().skip(1).peekable();
    // `busybox sh -c ..`
    words.next_if(|word| contains(SHELLS, word));
    while let Some(word) = words.next() {
        match word.strip_prefix(['-', '+']) {
            Some("-") => return (has_text, words.next()),
            Some(long) if long.starts_with('-') => {
                has_text |= long == "-command";
                words.next_if(|_| matches!(long, "-rcfile" | "-init-file" | "-init-command" | "-emulate"));
            }
            Some(flags) if !flags.is_empty() => {
                // PowerShell's options are words: `-NonInteractive`.
                let is_short = flags.len() <= 6 && flags.bytes().all(|b| b.is_ascii_lowercase() || b == b'O');
                has_text |= is_short && flags.contains('c');
                // The name of an option.
                words.next_if(|_| is_short && flags.ends_with(['o', 'O']));
            }
            // It may be the value of an option that not every shell has: then the commands are not known.
            _ => {
                let may_come = !has_text && words.any(|word| is_text_option(word));
                return (has_text || may_come, Some(word).filter(|_| !may_come));
            }
        }
    }
    (has_text, None)
}

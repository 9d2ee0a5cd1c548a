//! Programs that work off steps: what comes next when the one that they wait for has ended.

use super::{
    is_in_a_shell,
    known_programs::contains,
    program::{command_name, words},
    text::{base, exe_name},
};
use crate::model::Image;

/// Whether it goes on with commands of its own when `program`, which it waits for, has ended: a shell with those of a script, of a
/// trap, or behind that program, and who works off a list of steps.
pub fn goes_on(image: &Image, program: Option<&Image>) -> bool {
    const STEPPING: &[&str] = &["just", "make"];
    let is_list = |text: &String| is_followed(text) || text.contains(" & ") || !is_last(text, program);
    contains(STEPPING, exe_name(image))
        || has_steps_after(image)
        || is_in_a_shell(image) && text_of_shell(image).is_none_or(is_list)
}

/// Whether it is a shell that may clean up by the commands in its arguments: `site & server; kill $!`.
pub fn cleans_up(image: &Image) -> bool {
    let has_list_behind =
        |text: &String| text.rsplit_once(" & ").is_some_and(|(_, rest)| rest.contains("&&"));
    is_in_a_shell(image)
        && text_of_shell(image).is_some_and(|text| is_followed(text) || has_list_behind(text))
}

/// Whether commands of a shell may come after another has ended.
fn is_followed(text: &str) -> bool {
    [";", "\n", "||", "trap"].iter().any(|sign| text.contains(sign))
}

/// Whether the last of these commands (`cd x && server`) runs this program.
fn is_last(text: &str, program: Option<&Image>) -> bool {
    let Some((_, last)) = text.rsplit_once("&&") else { return true };
    let names = program.into_iter().flat_map(|image| image.argv.iter().take(2));
    names.map(|word| base(word)).any(|name| !name.is_empty() && last.contains(name))
}

/// Whether it is a package manager that runs a script of a package, and then the one for after that (`postmcp`, of `mcp`).
fn has_steps_after(image: &Image) -> bool {
    let words = words(image);
    let mut heads = words.iter().take(2).map(|word| command_name(word));
    let is_step = |word: &&str| matches!(*word, "run" | "run-script" | "start");
    heads.any(|name| matches!(name, "npm" | "yarn" | "bun" | "pnpm")) && words.iter().take(8).any(is_step)
}

/// The commands behind `-c`, if all of them are known.
pub fn text_of_shell(image: &Image) -> Option<&String> {
    let is_option = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let at = image.argv.iter().skip(1).position(is_option).filter(|_| !image.argv_truncated)?;
    image.argv.get(at + 2)
}

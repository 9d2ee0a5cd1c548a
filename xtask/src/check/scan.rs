//! What the checks read of Rust, as rustfmt lays it out: the code without comments and test modules, and the modules of
//! the crate that this code names.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::files::{self, name};

/// What is built, fetched or hidden.
const SKIPPED: [&str; 6] = ["target", "node_modules", ".git", ".toolchain", ".cache", "__pycache__"];

/// Every file below `dir` in order of its path, without what is skipped.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in
        files::list(dir)?.into_iter().filter(|path| !SKIPPED.contains(&&*name(path)) && !path.is_symlink())
    {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether `what` occurs in a text where the characters before and after it fit.
pub fn occurs(text: &str, what: &str, fits: impl Fn(Option<char>, Option<char>) -> bool) -> bool {
    text.match_indices(what).any(|(at, _)| {
        let before = text.get(..at).and_then(|s| s.chars().next_back());
        fits(before, text.get(at + what.len()..).and_then(|s| s.chars().next()))
    })
}

/// Whether it occurs as whole words.
pub fn has_word(text: &str, word: &str) -> bool {
    occurs(text, word, |before, after| !before.is_some_and(is_word) && !after.is_some_and(is_word))
}

/// Whether a file is test code by its place: it may look at everything, and its module's header speaks for it.
pub fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests") || file.iter().any(|part| part == "tests")
}

/// The code of a file without comments of a line, and without everything from the first test module on.
pub fn code(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let tests = |pair: &[&str]| matches!(pair, [marker, module] if marker.trim() == "#[cfg(test)]" && is_module(module));
    let end = lines.windows(2).position(tests).unwrap_or(lines.len());
    lines.get(..end).unwrap_or_default().join("\n")
}

/// Whether a module begins in this line. `mod testing;` at the head of a file ends nothing.
fn is_module(line: &str) -> bool {
    let line = line.trim();
    line.ends_with('{') && words(line).iter().any(|word| word == "mod")
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of code: identifiers, and every other character that is not space by itself.
fn words(code: &str) -> Vec<String> {
    let apart = |c| if is_word(c) { vec![c] } else { vec![' ', c, ' '] };
    code.chars().flat_map(apart).collect::<String>().split_whitespace().map(str::to_owned).collect()
}

/// The modules that code names by a path from `root` (`crate`, or `super` in a module of the first level):
/// `crate::a::b`, `use crate::{a, b::c, d::{e}}`.
pub fn modules_below(code: &str, root: &str) -> BTreeSet<String> {
    let words = words(code);
    let word = |i: usize| words.get(i).map(String::as_str).unwrap_or_default();
    let mut found = BTreeSet::new();
    for i in 0..words.len() {
        // `a::super::b` or `my_crate` are other things.
        if word(i) != root || word(i + 1) != ":" || word(i + 2) != ":" || (i > 0 && word(i - 1) == ":") {
            continue;
        }
        let (mut depth, mut at) = (0_i32, i + 3);
        loop {
            let is_name = depth == 0 || (depth == 1 && matches!(word(at - 1), "{" | ","));
            match word(at) {
                "{" => depth += 1,
                "}" => depth -= 1,
                name if is_name => drop(found.insert(name.to_owned())),
                _ => {}
            }
            at += 1;
            if depth <= 0 || at >= words.len() {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(code: &str) -> Vec<String> {
        modules_below(&super::code(code), "crate").into_iter().collect()
    }

    #[test]
    fn paths_and_groups_name_modules() {
        assert_eq!(named("use crate::model::ProcessId;"), ["model"]);
        assert_eq!(
            named("use crate::{\n  model::{BootTime, Input},\n  sink, probe as p,\n};"),
            ["model", "probe", "sink"]
        );
        assert_eq!(
            named("fn f() -> crate :: verdict::Verdict { crate::lineage::new() }"),
            ["lineage", "verdict"]
        );
        assert_eq!(named("pub(crate) fn f() { my_crate::x() }"), Vec::<String>::new());
    }

    #[test]
    fn comments_and_tests_name_nothing() {
        assert_eq!(named("//! See [`crate::sink`].\nlet a = 1; // crate::a::b"), Vec::<String>::new());
        assert_eq!(
            named("use crate::model;\n#[cfg(test)]\nmod tests { use crate::sink; }"),
            ["model", "sink"]
        );
        assert_eq!(named("use crate::model;\n#[cfg(test)]\nmod tests {\n use crate::sink;\n}"), ["model"]);
        assert_eq!(named("#[cfg(test)]\nuse x;\nuse crate::sink;"), ["sink"]);
        assert_eq!(named("#[cfg(test)]\nmod testing;\nuse crate::sink;"), ["sink"]);
    }
}

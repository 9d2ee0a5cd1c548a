//! What the checks read of Rust, as rustfmt lays it out: the code without comments and test modules, and the modules of
//! the crate that this code names.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// Every file below `dir` in order of its path, without what is built, fetched or hidden.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(dir, &mut found).with_context(|| format!("cannot read {}", dir.display()))?;
    found.sort();
    Ok(found)
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let skipped =
            ["target", "node_modules", ".git", ".toolchain", ".cache", "__pycache__"].contains(&&*name);
        if kind.is_dir() && !skipped {
            collect(&entry.path(), found)?;
        } else if kind.is_file() && !skipped {
            found.push(entry.path());
        }
    }
    Ok(())
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
    line.ends_with('{') && words(line).contains(&"mod")
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of code: identifiers, and every other character that is not space by itself.
fn words(code: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) {
            rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, tail) = rest.split_at(len);
        words.push(word);
        rest = tail.trim_start();
    }
    words
}

/// The modules that code names by a path from `root` (`crate`, or `super` in a module of the first level):
/// `crate::a::b`, `use crate::{a, b::c, d::{e}}`.
pub fn modules_below(code: &str, root: &str) -> BTreeSet<String> {
    let words = words(code);
    let word = |i: usize| words.get(i).copied().unwrap_or_default();
    let mut found = BTreeSet::new();
    for i in 0..words.len() {
        // `a::super::b` or `my_crate` are other things.
        if word(i) != root || word(i + 1) != ":" || word(i + 2) != ":" || (i > 0 && word(i - 1) == ":") {
            continue;
        }
        if word(i + 3) != "{" {
            found.insert(word(i + 3).to_owned());
            continue;
        }
        let mut depth = 0_usize;
        for j in i + 3..words.len() {
            match word(j) {
                "{" => depth += 1,
                "}" if depth == 1 => break,
                "}" => depth -= 1,
                name if depth == 1 && matches!(word(j - 1), "{" | ",") => {
                    found.insert(name.to_owned());
                }
                _ => {}
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

//! A minimal parser of Rust for the checks: it finds the code without comments, strings and test modules, and the
//! modules of the crate that this code names.

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

/// The code of a file with comments, the contents of strings and everything from the first `#[cfg(test)]`
/// module on blanked out; line breaks stay, so that line numbers do.
pub fn code(text: &str) -> String {
    let bare = blank(text);
    let tests = bare.match_indices("#[cfg(test)]").map(|(at, _)| at).find(|at| {
        let rest = bare.get(at + "#[cfg(test)]".len()..).unwrap_or_default();
        // `mod testing;` at the head of a file ends nothing.
        let upto = rest.find([';', '{']).and_then(|end| rest.get(..=end)).unwrap_or_default();
        upto.ends_with('{') && words(upto).contains(&"mod")
    });
    bare.get(..tests.unwrap_or(bare.len())).unwrap_or_default().to_owned()
}

/// Blanks comments and literals.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while i < chars.len() {
        let end = match (at(i), at(i + 1)) {
            ('/', '/') => span(&chars, i, |j| at(j) == '\n'),
            ('/', '*') => block_comment(&chars, i),
            ('r', '"' | '#') if !is_word(at(i.wrapping_sub(1))) => raw_string(&chars, i),
            ('"', _) => quoted(&chars, i, '"'),
            // A lifetime is not the start of a character literal.
            ('\'', '\\') => quoted(&chars, i, '\''),
            ('\'', _) if at(i + 2) == '\'' => i + 3,
            _ => i,
        };
        if end == i {
            out.push(at(i));
            i += 1;
        } else {
            out.extend(chars.iter().skip(i).take(end - i).map(|&c| if c == '\n' { '\n' } else { ' ' }));
            i = end;
        }
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The first index from `start` on where `stop` holds, or the end.
fn span(chars: &[char], start: usize, stop: impl Fn(usize) -> bool) -> usize {
    (start..chars.len()).find(|&j| stop(j)).unwrap_or(chars.len())
}

fn block_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut j = start;
    while j < chars.len() {
        match (chars.get(j), chars.get(j + 1)) {
            (Some('/'), Some('*')) => (depth, j) = (depth + 1, j + 2),
            (Some('*'), Some('/')) => {
                (depth, j) = (depth - 1, j + 2);
                if depth == 0 {
                    break;
                }
            }
            _ => j += 1,
        }
    }
    j.min(chars.len())
}

/// The end of a raw string; `start` itself if this is an identifier such as `r#type`.
fn raw_string(chars: &[char], start: usize) -> usize {
    let hashes = span(chars, start + 1, |j| chars.get(j) != Some(&'#')) - start - 1;
    if chars.get(start + 1 + hashes) != Some(&'"') {
        return start;
    }
    let closes = |j: usize| {
        chars.get(j) == Some(&'"')
            && chars.iter().skip(j + 1).take(hashes).filter(|&&c| c == '#').count() == hashes
    };
    (span(chars, start + 2 + hashes, closes) + 1 + hashes).min(chars.len())
}

fn quoted(chars: &[char], start: usize, quote: char) -> usize {
    let mut j = start + 1;
    while let Some(&c) = chars.get(j) {
        match c {
            '\\' => j += 2,
            c if c == quote => return j + 1,
            _ => j += 1,
        }
    }
    chars.len()
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
    fn comments_strings_and_tests_name_nothing() {
        assert_eq!(
            named("//! See [`crate::sink`].\n/* crate::a::b /* crate::c */ crate::d */"),
            Vec::<String>::new()
        );
        assert_eq!(
            named(r##"let a = "crate::sink\"crate::x"; let b = r#"crate::"y" crate::z"#;"##),
            Vec::<String>::new()
        );
        assert_eq!(named("use crate::model;\n#[cfg(test)]\nmod tests { use crate::sink; }"), ["model"]);
        assert_eq!(named("#[cfg(test)]\nuse x; use crate::sink;"), ["sink"]);
        assert_eq!(named("#[cfg(test)]\nmod testing;\nuse crate::sink;"), ["sink"]);
    }

    #[test]
    fn lifetimes_and_characters_do_not_swallow_code() {
        assert_eq!(named("fn f<'a>(c: &'a str) { m('\"', '\\'', 'x'); crate::model::g() }"), ["model"]);
        assert_eq!(named("let r#type = crate::model::T; for r in x {} crate::sink::g()"), ["model", "sink"]);
    }

    #[test]
    fn lines_stay_where_they_are() {
        let text = "a\n/* b\n c */ d \"e\nf\"\ng";
        assert_eq!(code(text).lines().count(), text.lines().count());
    }
}

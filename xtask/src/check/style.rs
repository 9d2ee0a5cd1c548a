//! House rules that no other tool checks: length of files, headers of modules, leftovers, paths of a developer's
//! machine, and lints switched on everywhere.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use super::scan;

/// The maximum number of lines of a file. A longer file has two topics and must be split.
const MAX_LINES: usize = 400;

/// Words that mark unfinished work. (Put together here so that this file is not found by itself.)
const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];

/// Folders that may be named although a checkout may lie in them: every host has them.
const COMMON: &str = "/ /home /root /tmp /usr /usr/src /usr/local /var /var/tmp /opt /srv /mnt";

/// Violations in the repository.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let machine = machine_paths(root);
    for file in scan::files(root)? {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        // What is not text (a stored BTF blob) has no style.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let relative = file.strip_prefix(root).unwrap_or(&file);
        findings.extend(judge(relative, &text, &machine));
    }
    Ok(findings)
}

/// The folder of this checkout and those above it, without those that every host has.
fn machine_paths(root: &Path) -> Vec<String> {
    root.ancestors()
        .map(|dir| dir.to_string_lossy().into_owned())
        .filter(|dir| COMMON.split(' ').all(|common| common != dir))
        .collect()
}

fn judge(relative: &Path, text: &str, machine: &[String]) -> Vec<String> {
    let mut findings = Vec::new();
    let name = relative.display();
    let is = |extension: &str| relative.extension().is_some_and(|e| e == extension);
    let lines = text.lines().count();
    let is_part = scan::is_test(relative)
        && (relative.starts_with("monitor/src") || relative.starts_with("monitor/core/src"));
    let is_member = relative.ends_with("Cargo.toml") && text.contains("[package]");
    for (is_wrong, what) in [
        (
            (is("rs") || is("py") || is("sh")) && lines > MAX_LINES,
            format!("{lines} lines, {MAX_LINES} at most: what are its two topics?"),
        ),
        (
            is("rs") && !is_part && !text.trim_start().starts_with("//!"),
            "opens without `//!` (purpose, invariant, who may use it)".to_owned(),
        ),
        (
            is_member && !text.contains("[lints]\nworkspace = true"),
            "the workspace's lints are not switched on ([lints] workspace = true)".to_owned(),
        ),
    ] {
        findings.extend(is_wrong.then(|| format!("{name}: {what}")));
    }
    for (number, line) in (1..).zip(text.lines()) {
        for word in LEFTOVERS.iter().filter(|word| scan::has_word(line, word)) {
            findings
                .push(format!("{name}:{number}: {word}: finish it, or open an issue and say so in prose"));
        }
        for path in machine.iter().filter(|path| has_path(line, path)).take(1) {
            findings.push(format!("{name}:{number}: {path} is a folder of this machine"));
        }
    }
    findings
}

/// Whether a line has this absolute path: not as the tail of a longer one, and not as the head of a longer name.
fn has_path(line: &str, path: &str) -> bool {
    let name = |c: char| c.is_alphanumeric() || "_-.~$}*>".contains(c);
    scan::occurs(line, path, |before, after| {
        before.is_none_or(|c| !name(c) && c != '/') && after.is_none_or(|c| c == '/' || !name(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &str, text: &str) -> Vec<String> {
        judge(Path::new(name), text, &["/build/place".into(), "/build".into()])
    }

    #[test]
    fn a_good_file_is_left_alone() {
        assert_eq!(
            judged("monitor/src/a.rs", "//! A.\nfn a() { let dir = \"/usr/bin\"; }\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn length_and_header_are_checked() {
        let long = format!("//! A.\n{}", "// x\n".repeat(400));
        assert_eq!(judged("a.rs", &long).len(), 1);
        assert_eq!(judged("a.rs", long.strip_suffix("// x\n").unwrap()).len(), 0);
        assert_eq!(judged("a.rs", "fn a() {}").len(), 1);
        assert_eq!(judged("tests/tests/a.rs", "fn a() {}").len(), 1);
        assert_eq!(judged("monitor/src/probe/wire_tests.rs", "use super::*;").len(), 0);
        assert_eq!(judged("a.md", "text").len(), 0);
    }

    #[test]
    fn leftovers_are_whole_words() {
        assert_eq!(judged("a.md", concat!("// TO", "DO: later")).len(), 1);
        assert_eq!(judged("a.md", concat!("MASTO", "DON and TO", "DOS")).len(), 0);
    }

    #[test]
    fn a_path_of_the_machine_is_found_and_a_longer_name_is_not() {
        assert_eq!(
            judged("a.md", "run /build/place/x"),
            ["a.md:1: /build/place is a folder of this machine"]
        );
        assert_eq!(judged("a.md", "in /build.").len(), 0);
        assert_eq!(judged("a.md", "see \"/build\"").len(), 1);
        assert_eq!(judged("a.md", "see target/build/x, ~/build/x, /builder/x, /a/build/x").len(), 0);
    }

    #[test]
    fn every_member_has_the_lints() {
        let with = "[package]\nname = \"a\"\n[lints]\nworkspace = true\n";
        assert_eq!(judged("a/Cargo.toml", with).len(), 0);
        assert_eq!(judged("a/Cargo.toml", "[package]\nname = \"a\"\n").len(), 1);
        assert_eq!(judged("Cargo.toml", "[workspace]\n").len(), 0);
    }
}

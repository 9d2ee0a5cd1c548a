//! Checks the pages for people, `README.md` and `docs/`: relative links and anchors resolve, lines are short, and
//! the index of `docs/` lists every page. The picture of the rooms (folders of modules) in `docs/architecture.md` matches
//! the folder tree: each folder of the picture exists, it contains every room of a crate whose rooms it shows, and no loose
//! files lie beside the rooms.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::files::{self, read};

/// A line has fewer columns than this.
const COLUMNS: usize = 120;

/// Violations in the pages of the repository.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    Ok([links_and_lines(root)?, rooms(root)?].concat())
}

fn links_and_lines(root: &Path) -> Result<Vec<String>> {
    let mut files = vec![root.join("README.md")];
    files.extend(files::ending(&root.join("docs"), "md")?);
    let mut findings = Vec::new();
    for file in &files {
        let text = read(file)?;
        let name = file.strip_prefix(root).unwrap_or(file).display();
        let wide = (1..).zip(text.lines()).filter(|(_, line)| line.chars().count() >= COLUMNS);
        findings.extend(wide.map(|(number, _)| format!("{name}:{number}: {COLUMNS} columns or more")));
        for (number, target) in links(&text) {
            if let Some(why) = broken(file, &target)? {
                findings.push(format!("{name}:{number}: the link to {target} leads nowhere: {why}"));
            }
        }
    }
    let index = read(&root.join("docs/README.md"))?;
    let listed: BTreeSet<String> = links(&index).into_iter().map(|(_, target)| target).collect();
    let names = files.iter().skip(1).map(|file| files::name(file));
    let missing = names.filter(|name| name != "README.md" && !listed.contains(name));
    findings.extend(missing.map(|name| format!("docs/README.md: no link to {name}")));
    Ok(findings)
}

/// Why a link of a page leads nowhere, if it does. Links to other hosts are not followed.
fn broken(page: &Path, target: &str) -> Result<Option<&'static str>> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(None);
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file: PathBuf = if path.is_empty() { page.to_owned() } else { page.with_file_name("").join(path) };
    if !file.exists() {
        return Ok(Some("there is no such file"));
    }
    let is_there = anchor.is_empty() || anchors(&read(&file)?).contains(anchor);
    Ok((!is_there).then_some("no heading there has this anchor"))
}

/// Lines that are not in a code block, numbered.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The targets of all links, with the number of their line. A link may begin on one line and end on the next.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // What stands in backquotes is no link.
        let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for part in outside.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The anchors of the headings, as the usual hosts of Markdown make them: small letters, no punctuation, spaces as
/// hyphens; the second heading of the same words gets `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let level = line.len() - line.trim_start_matches('#').len();
        if level == 0 || !line.trim_start_matches('#').starts_with(' ') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut anchor = slug.clone();
        let mut number = 0;
        while !anchors.insert(anchor) {
            number += 1;
            anchor = format!("{slug}-{number}");
        }
    }
    anchors
}

/// The page with the picture: its first block of text.
const PAGE: &str = "docs/architecture.md";

/// What may lie beside the rooms of a crate.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// Differences between the picture and the folders.
fn rooms(root: &Path) -> Result<Vec<String>> {
    let page = files::read(&root.join(PAGE))?;
    let picture = page.split_once("```text\n").and_then(|(_, rest)| rest.split_once("\n```"));
    let (picture, _) = picture.with_context(|| format!("{PAGE} has no picture"))?;
    let mut findings = Vec::new();
    for (package, rooms) in drawn(picture) {
        if !root.join(&package).is_dir() {
            findings.push(format!("{PAGE}: there is no folder {package}"));
        } else if !rooms.is_empty() {
            findings.extend(differences(&root.join(&package).join("src"), &package, &rooms)?);
        }
    }
    Ok(findings)
}

/// The folders of the picture, each with the rooms that are drawn below it.
fn drawn(picture: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut drawn: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in picture.lines() {
        let Some((name, _)) = line.trim_start().split_once("/ ") else { continue };
        match drawn.last_mut() {
            Some((_, rooms)) if line.starts_with(' ') => drop(rooms.insert(name.to_owned())),
            _ => drawn.push((name.to_owned(), BTreeSet::new())),
        }
    }
    drawn
}

fn differences(src: &Path, package: &str, rooms: &BTreeSet<String>) -> Result<Vec<String>> {
    let (folders, files): (Vec<PathBuf>, Vec<_>) = files::list(src)?.into_iter().partition(|it| it.is_dir());
    let there: BTreeSet<String> = folders.iter().map(|folder| files::name(folder)).collect();
    let missing = there.difference(rooms).map(|room| format!("{PAGE}: {package}/src/{room} is not drawn"));
    let gone = rooms.difference(&there).map(|room| format!("{PAGE}: there is no {package}/src/{room}"));
    let loose = files.iter().map(|file| files::name(file)).filter(|file| !ROOTS.contains(&file.as_str()));
    let loose = loose.map(|file| format!("{package}/src/{file}: which room does it belong to?"));
    Ok(missing.chain(gone).chain(loose).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn headings_have_anchors_and_code_has_none() {
        let text = "# Guards, and a person's word\n```console\n# no heading\n```\n## `[hook]`\n## Twice\n## Twice\n#none\n";
        let expected = ["guards-and-a-persons-word", "hook", "twice", "twice-1"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md#c) and\n[d](#e), `[f](g)`\n```\n[h](i)\n```\n";
        assert_eq!(links(text), [(1, "b.md#c".to_owned()), (2, "#e".to_owned())]);
    }

    #[test]
    fn what_is_wrong_in_pages_is_found() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        write("README.md", "[docs](docs/README.md), [there](https://example.com)\n");
        write("docs/README.md", "# Index\n[a](a.md)\n");
        write("docs/a.md", "# A page\n[up](README.md#index) [here](#a-page)\n");
        assert_eq!(links_and_lines(root.path()).unwrap(), Vec::<String>::new());
        write("docs/a.md", &format!("[x](#nowhere) [y](gone.md)\n{}\n", "x".repeat(120)));
        write("docs/b.md", "# Forgotten\n");
        let found = links_and_lines(root.path()).unwrap();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("docs/a.md:2: 120 columns"), "{found:?}");
        assert!(found[1].contains("#nowhere") && found[2].contains("gone.md"), "{found:?}");
        assert_eq!(found[3], "docs/README.md: no link to b.md");
    }

    #[test]
    fn the_picture_is_the_folders() {
        let root = tempfile::tempdir().unwrap();
        let dir = |name: &str| fs::create_dir_all(root.path().join(name)).unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        dir("docs");
        dir("a/src/one");
        dir("b");
        write("a/src/lib.rs", "");
        write(
            PAGE,
            "# A\n```text\na/      the first\n    one/    a room,\n            on two lines\nb/  no rooms\n```\n",
        );
        assert_eq!(rooms(root.path()).unwrap(), Vec::<String>::new());
        dir("a/src/two");
        write("a/src/loose.rs", "");
        write(PAGE, "```text\na/      the first\n    one/  x\n    old/  x\nc/  gone\n```\n");
        let found = rooms(root.path()).unwrap();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found[0].contains("a/src/two is not drawn") && found[1].contains("no a/src/old"),
            "{found:?}"
        );
        assert!(found[2].starts_with("a/src/loose.rs:") && found[3].contains("no folder c"), "{found:?}");
    }
}

//! Checks the pages for people, `README.md` and `docs/`: relative links and anchors resolve, lines are short, and
//! the index of `docs/` lists every page.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::docs;

/// A line has fewer columns than this.
const COLUMNS: usize = 120;

/// Violations in the pages of the repository.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let mut files = vec![root.join("README.md")];
    files.extend(docs::pages(&root.join("docs"))?);
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
    let names = files.iter().skip(1).filter_map(|file| file.file_name()).map(|name| name.to_string_lossy());
    let missing = names.filter(|name| *name != "README.md" && !listed.contains(&**name));
    findings.extend(missing.map(|name| format!("docs/README.md: no link to {name}")));
    Ok(findings)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Why a link of a page leads nowhere, if it does. Links to other hosts are not followed.
fn broken(page: &Path, target: &str) -> Result<Option<String>> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(None);
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file: PathBuf = if path.is_empty() { page.to_owned() } else { page.with_file_name("").join(path) };
    if !file.exists() {
        return Ok(Some("there is no such file".to_owned()));
    }
    if anchor.is_empty() || anchors(&read(&file)?).contains(anchor) {
        return Ok(None);
    }
    Ok(Some("no heading there has this anchor".to_owned()))
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

#[cfg(test)]
mod tests {
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
        assert_eq!(findings(root.path()).unwrap(), Vec::<String>::new());
        write("docs/a.md", &format!("[x](#nowhere) [y](gone.md)\n{}\n", "x".repeat(120)));
        write("docs/b.md", "# Forgotten\n");
        let found = findings(root.path()).unwrap();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("docs/a.md:2: 120 columns"), "{found:?}");
        assert!(found[1].contains("#nowhere") && found[2].contains("gone.md"), "{found:?}");
        assert_eq!(found[3], "docs/README.md: no link to b.md");
    }
}

//! Checks that the picture of the rooms (folders of modules) in `docs/architecture.md` matches the folder tree. Each
//! folder of the picture exists. The picture contains every room of a crate whose rooms it shows, and no loose files
//! lie beside the rooms.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};

/// The page with the picture: its first block of text.
const PAGE: &str = "docs/architecture.md";

/// What may lie beside the rooms of a crate.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// Differences between the picture and the folders.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let (_, rest) = page.split_once("```text\n").with_context(|| format!("{PAGE} has no picture"))?;
    let (picture, _) =
        rest.split_once("\n```").with_context(|| format!("the picture in {PAGE} has no end"))?;
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
fn drawn(picture: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut drawn: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut package = String::new();
    for line in picture.lines() {
        let Some((name, _)) = line.trim_start().split_once("/ ") else { continue };
        if line.starts_with(' ') {
            drawn.entry(package.clone()).or_default().insert(name.to_owned());
        } else {
            name.clone_into(&mut package);
            drawn.entry(package.clone()).or_default();
        }
    }
    drawn
}

fn differences(src: &Path, package: &str, rooms: &BTreeSet<String>) -> Result<Vec<String>> {
    let entries = fs::read_dir(src).with_context(|| format!("cannot read {}", src.display()))?;
    let (folders, files): (Vec<_>, Vec<_>) = entries.flatten().partition(|entry| entry.path().is_dir());
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let there: BTreeSet<String> = folders.iter().map(name).collect();
    let missing = there.difference(rooms).map(|room| format!("{PAGE}: {package}/src/{room} is not drawn"));
    let gone = rooms.difference(&there).map(|room| format!("{PAGE}: there is no {package}/src/{room}"));
    let loose = files.iter().map(name).filter(|file| !ROOTS.contains(&file.as_str()));
    let loose = loose.map(|file| format!("{package}/src/{file}: which room does it belong to?"));
    Ok(missing.chain(gone).chain(loose).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(findings(root.path()).unwrap(), Vec::<String>::new());
        dir("a/src/two");
        write("a/src/loose.rs", "");
        write(PAGE, "```text\na/      the first\n    one/  x\n    old/  x\nc/  gone\n```\n");
        let found = findings(root.path()).unwrap();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found[0].contains("a/src/two is not drawn") && found[1].contains("no a/src/old"),
            "{found:?}"
        );
        assert!(found[2].starts_with("a/src/loose.rs:") && found[3].contains("no folder c"), "{found:?}");
    }
}

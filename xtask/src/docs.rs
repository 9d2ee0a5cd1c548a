//! `cargo xtask docs`: writes the parts of the pages in `docs/` that are generated from the code.
//!
//! The example `reference` of the daemon's package prints each part between two comments, `<!-- NAME:begin -->` and
//! `<!-- NAME:end -->`. A page has the same comments where the part belongs. `cargo xtask check reference` fails if
//! a page differs from what this verb writes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{command, setup, workspace};

/// The verb.
pub fn main() -> Result<()> {
    for (path, text) in stale()? {
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        command::say("docs", &format!("{} written", path.display()));
    }
    Ok(())
}

/// Pages with a generated part that is not up to date, as they should be.
pub fn stale() -> Result<Vec<(PathBuf, String)>> {
    setup::bpf()?;
    let printed = command::output(workspace::cargo().args([
        "run",
        "--quiet",
        "-p",
        "orphand",
        "--example",
        "reference",
    ]))?;
    let mut parts: Vec<(Part<'_>, bool)> = parts(&printed)?.into_iter().map(|part| (part, false)).collect();
    let mut stale = Vec::new();
    for path in pages(&workspace::root().join("docs"))? {
        let old = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut new = old.clone();
        for (part, used) in &mut parts {
            if let Some(text) = part.put_into(&new).with_context(|| path.display().to_string())? {
                (new, *used) = (text, true);
            }
        }
        if new != old {
            stale.push((path, new));
        }
    }
    for (part, used) in &mut parts {
        // The one part that is a file of its own.
        if part.name == "schema" {
            let (path, new) = (workspace::root().join("docs/schema.json"), format!("{}\n", part.text.trim()));
            *used = true;
            if fs::read_to_string(&path).ok().as_ref() != Some(&new) {
                stale.push((path, new));
            }
        }
    }
    for (part, used) in parts {
        ensure!(used, "no page has the part `{}`: `{}` says where it belongs", part.name, part.begin());
    }
    Ok(stale)
}

/// The pages in a folder, by name.
pub fn pages(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut pages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    pages.retain(|path| path.extension().is_some_and(|e| e == "md"));
    pages.sort();
    Ok(pages)
}

/// A generated part.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    name: &'a str,
    text: &'a str,
}

impl Part<'_> {
    fn begin(&self) -> String {
        format!("<!-- {}:begin -->", self.name)
    }

    fn end(&self) -> String {
        format!("<!-- {}:end -->", self.name)
    }

    /// The page with this part in its place; nothing if the page has no place for it.
    fn put_into(&self, page: &str) -> Result<Option<String>> {
        let (begin, end) = (self.begin(), self.end());
        let Some((before, rest)) = page.split_once(&begin) else { return Ok(None) };
        let Some((_, after)) = rest.split_once(&end) else { bail!("`{begin}` has no `{end}` below it") };
        Ok(Some(format!("{before}{begin}\n\n{}\n\n{end}{after}", self.text.trim())))
    }
}

/// Splits what the example printed.
fn parts(printed: &str) -> Result<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = printed;
    while let Some((_, tail)) = rest.split_once("<!-- ") {
        let (name, tail) = tail.split_once(":begin -->").context("the reference has no begin")?;
        let end = format!("<!-- {name}:end -->");
        let (text, tail) = tail.split_once(&end).with_context(|| format!("the reference has no {end}"))?;
        parts.push(Part { name, text });
        rest = tail;
    }
    ensure!(!parts.is_empty(), "the reference is empty");
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_put_into_their_places() {
        let printed = "<!-- a:begin -->\nnew a\n<!-- a:end -->\n<!-- b:begin -->\nnew b\n<!-- b:end -->\n";
        let parts = parts(printed).unwrap();
        assert_eq!(parts.iter().map(|part| part.name).collect::<Vec<_>>(), ["a", "b"]);
        let page = "head\n<!-- b:begin -->\nold\n<!-- b:end -->\ntail\n";
        assert_eq!(parts[0].put_into(page).unwrap(), None);
        let new = parts[1].put_into(page).unwrap().unwrap();
        assert_eq!(new, "head\n<!-- b:begin -->\n\nnew b\n\n<!-- b:end -->\ntail\n");
        assert_eq!(parts[1].put_into(&new).unwrap().unwrap(), new, "twice is once");
    }

    #[test]
    fn what_is_cut_short_is_told() {
        assert!(parts("").is_err());
        assert!(parts("<!-- a:begin -->\nnever ends").is_err());
        assert!(Part { name: "a", text: "x" }.put_into("<!-- a:begin -->\n").is_err());
    }
}

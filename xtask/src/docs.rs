//! `cargo xtask docs`: writes the parts of the pages in `docs/` that are generated from the code.
//!
//! The example `reference` of the daemon's package prints each part between two comments, `<!-- NAME:begin -->` and
//! `<!-- NAME:end -->`. A page has the same comments where the part belongs. `cargo xtask check reference` fails if
//! a page differs from what this verb writes.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::{command, files, setup, workspace};

pub fn main() -> Result<()> {
    for (path, text) in stale()? {
        files::write(&path, &text)?;
        command::say("docs", &format!("{} written", path.display()));
    }
    Ok(())
}

/// Pages with a generated part that is not up to date, as they should be.
pub fn stale() -> Result<Vec<(PathBuf, String)>> {
    setup::bpf()?;
    let reference = ["run", "--quiet", "-p", "orphand", "--example", "reference"];
    let printed = command::output(workspace::cargo().args(reference))?;
    let (docs, parts) = (workspace::root().join("docs"), parts(&printed)?);
    let (mut all, mut used) = (Vec::new(), Vec::new());
    for path in files::ending(&docs, "md")? {
        let mut page = files::read(&path)?;
        for (name, text) in &parts {
            if let Some(new) = put(name, text, &page).with_context(|| path.display().to_string())? {
                page = new;
                used.push(name);
            }
        }
        all.push((path, page));
    }
    for (name, text) in &parts {
        // The one part that is a file of its own.
        if *name == "schema" {
            all.push((docs.join("schema.json"), format!("{text}\n")));
        } else {
            ensure!(
                used.contains(&name),
                "no page has the part `{name}`: `{}` says where it belongs",
                begin(name)
            );
        }
    }
    all.retain(|(path, text)| files::read(path).ok().as_ref() != Some(text));
    Ok(all)
}

/// The page with the part of this name in its place; nothing if the page has no place for it.
fn put(name: &str, text: &str, page: &str) -> Result<Option<String>> {
    let (begin, end) = (begin(name), end(name));
    let Some((before, rest)) = page.split_once(&begin) else { return Ok(None) };
    let (_, after) = rest.split_once(&end).with_context(|| format!("`{begin}` has no `{end}` below it"))?;
    Ok(Some(format!("{before}{begin}\n\n{text}\n\n{end}{after}")))
}

fn begin(name: &str) -> String {
    format!("<!-- {name}:begin -->")
}

fn end(name: &str) -> String {
    format!("<!-- {name}:end -->")
}

/// Splits what the example printed into names and texts.
fn parts(printed: &str) -> Result<Vec<(&str, &str)>> {
    let mut parts = Vec::new();
    let mut rest = printed;
    while let Some((_, tail)) = rest.split_once("<!-- ") {
        let (name, tail) = tail.split_once(":begin -->").context("the reference has no begin")?;
        let ended = tail.split_once(&end(name));
        let (text, tail) = ended.with_context(|| format!("the reference has no {}", end(name)))?;
        parts.push((name, text.trim()));
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
        assert_eq!(parts, [("a", "new a"), ("b", "new b")]);
        let page = "head\n<!-- b:begin -->\nold\n<!-- b:end -->\ntail\n";
        assert_eq!(put("a", "new a", page).unwrap(), None);
        let new = put("b", "new b", page).unwrap().unwrap();
        assert_eq!(new, "head\n<!-- b:begin -->\n\nnew b\n\n<!-- b:end -->\ntail\n");
        assert_eq!(put("b", "new b", &new).unwrap().unwrap(), new, "twice is once");
    }

    #[test]
    fn what_is_cut_short_is_told() {
        assert!(parts("").is_err());
        assert!(parts("<!-- a:begin -->\nnever ends").is_err());
        assert!(put("a", "x", "<!-- a:begin -->\n").is_err());
    }
}

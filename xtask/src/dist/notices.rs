//! The authors and licences of the code in the binary. A static binary must carry the notices of everything it is
//! linked with.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Result;

use crate::{
    command, files,
    setup::Bpf,
    workspace::{self, Package},
};

/// What is linked beside packages of the registry.
const BESIDE: &str = include_str!("../../../packaging/third-parties");

/// Where Debian has the text of the LGPL.
const LGPL: &str = "/usr/share/common-licenses/LGPL-2.1";

/// The file that tells it all.
pub fn notices(way: &Bpf) -> Result<String> {
    let (linked, packages) = (linked(way)?, workspace::metadata(&["--locked"])?.packages);
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut list, mut bare) = (Vec::new(), Vec::new());
    let name = |package: &Package| format!("{} {}", package.name, package.version);
    for package in packages.iter().filter(|one| one.source.is_some() && linked.contains(&name(one))) {
        let name = name(package);
        list.push(format!("- {name}: {}\n", package.license.as_deref().unwrap_or("no licence stated")));
        let found = licences(package)?;
        if found.is_empty() {
            bare.push(format!("- {name}: {}\n", package.authors.join(", ")));
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut all = vec![format!("{BESIDE}\nPackages\n\n{}", list.concat())];
    if !bare.is_empty() {
        let why = "These bring no text along; that of their licence by others is below. Their authors:";
        all.push(format!("\n{why}\n\n{}", bare.concat()));
    }
    let texts = texts.into_iter().map(|(text, names)| (names.join(", "), text));
    let lgpl = fs::read_to_string(LGPL).ok().map(|text| ("The GNU C Library".to_owned(), text));
    let line = "-".repeat(72);
    all.extend(texts.chain(lgpl).map(|(names, text)| format!("\n{line}\n{names}\n\n{text}\n")));
    Ok(all.concat())
}

/// The packages that are in the binary, those in the programs in the kernel included: `name version`.
fn linked(way: &Bpf) -> Result<BTreeSet<String>> {
    let tree = |package: &str, target: &[&str]| {
        let mut cargo = workspace::cargo();
        cargo.args(
            "tree --locked --edges normal,no-proc-macro --prefix none --format {p} --package".split(' '),
        );
        command::output(cargo.arg(package).args(target).env("RUSTC", &way.rustc))
    };
    let all = tree("orphand", &[])? + &tree("monitor-ebpf", &["--target", crate::setup::TARGET])?;
    Ok(all.lines().filter_map(name).collect())
}

/// `serde v1.0.1 (path) (*)` is `serde 1.0.1`.
fn name(line: &str) -> Option<String> {
    let (name, rest) = line.split_once(" v")?;
    Some(format!("{name} {}", rest.split_whitespace().next()?))
}

/// The licences and notices that a package brings along.
fn licences(package: &Package) -> Result<Vec<String>> {
    let all = files::list(package.manifest_path.parent().unwrap_or(&package.manifest_path))?;
    let texts = all.iter().filter(|file| file.is_file() && is_licence(file));
    Ok(texts.filter_map(|file| fs::read_to_string(file).ok()).map(|text| tidy(&text)).collect())
}

fn is_licence(file: &Path) -> bool {
    let name = files::name(file).to_ascii_uppercase();
    let words = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
    words.iter().any(|word| name.starts_with(word)) && file.extension().is_none_or(|its| its != "rs")
}

/// The same text is the same, however its lines end.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_tree_names_a_package() {
        assert_eq!(name("serde v1.0.1 (*)").as_deref(), Some("serde 1.0.1"));
        assert_eq!(name("orphand v0.1.0 (/somewhere/monitor)").as_deref(), Some("orphand 0.1.0"));
        assert_eq!(name(""), None);
    }

    #[test]
    fn the_same_licence_is_there_once() {
        assert_eq!(tidy("MIT \r\n\r\ntext\r\n"), tidy("\nMIT\n\ntext"));
        assert!(is_licence(Path::new("a/LICENSE-MIT")) && is_licence(Path::new("a/license-apache.md")));
        assert!(!is_licence(Path::new("a/licence.rs")) && !is_licence(Path::new("a/README.md")));
    }
}

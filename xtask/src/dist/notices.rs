//! The authors and licences of the code in the binary. A static binary must carry the notices of everything it is
//! linked with.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};

use crate::{
    command,
    setup::Bpf,
    workspace::{self, Package},
};

/// What is linked beside packages of the registry.
const BESIDE: &str = "\
Beside the packages below, the binary has in it:

- the standard library of Rust, by The Rust Project Developers, MIT OR Apache-2.0;
- SQLite, which its authors have put into the public domain;
- of the GNU C Library, what the rest calls, by the Free Software Foundation, LGPL-2.1-or-later: its licence is at the end, where
  the machine that built this had it, and at https://www.gnu.org/licenses/lgpl-2.1.html. To link the binary with another version
  of that library, take the source of orphand of this version and call `cargo xtask dist`;
- of GCC's run-time library, what unwinds the stack, GPL-3.0-or-later WITH GCC-exception-3.1.
";

/// Where Debian has the text of the LGPL.
const LGPL: &str = "/usr/share/common-licenses/LGPL-2.1";

/// The file that tells it all.
pub fn notices(way: &Bpf) -> Result<String> {
    let linked = linked(way)?;
    let metadata = workspace::metadata(&["--locked"])?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut list, mut bare) = (Vec::new(), Vec::new());
    for package in metadata.packages.iter().filter(|p| p.source.is_some()) {
        let name = format!("{} {}", package.name, package.version);
        if !linked.contains(&name) {
            continue;
        }
        list.push(format!("- {name}: {}\n", package.license.as_deref().unwrap_or("no licence stated")));
        let found = licences(package)?;
        if found.is_empty() {
            bare.push(format!("- {name}: {}\n", package.authors.join(", ")));
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let line = "-".repeat(72);
    let mut parts =
        vec![format!("Third parties' work in orphand\n\n{BESIDE}\nPackages\n\n{}", list.concat())];
    if !bare.is_empty() {
        let them = bare.concat();
        parts.push(format!(
            "\nThese bring no text along; that of their licence by others is below. Their authors:\n\n{them}"
        ));
    }
    parts.extend(texts.iter().map(|(text, names)| format!("\n{line}\n{}\n\n{text}\n", names.join(", "))));
    parts
        .extend(fs::read_to_string(LGPL).ok().map(|text| format!("\n{line}\nThe GNU C Library\n\n{text}\n")));
    Ok(parts.concat())
}

/// The packages that are in the binary, those in the programs in the kernel included: `name version`.
fn linked(way: &Bpf) -> Result<BTreeSet<String>> {
    let tree = |package: &str, target: &[&str]| {
        command::output(
            workspace::cargo()
                .args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"])
                .args(["--format", "{p}", "--package", package])
                .args(target)
                .env("RUSTC", &way.rustc),
        )
    };
    let mut all = tree("orphand", &[])?;
    all += &tree("monitor-ebpf", &["--target", crate::setup::TARGET])?;
    Ok(all.lines().filter_map(name).collect())
}

/// `serde v1.0.1 (path) (*)` is `serde 1.0.1`.
fn name(line: &str) -> Option<String> {
    let (name, rest) = line.split_once(" v")?;
    Some(format!("{name} {}", rest.split_whitespace().next()?))
}

/// The licences and notices that a package brings along.
fn licences(package: &Package) -> Result<Vec<String>> {
    let Some(dir) = package.manifest_path.parent() else { return Ok(Vec::new()) };
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|f| f.is_file() && is_licence(f)).collect();
    files.sort();
    Ok(files.iter().filter_map(|file| fs::read_to_string(file).ok()).map(|text| tidy(&text)).collect())
}

fn is_licence(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
    let is_source = file.extension().is_some_and(|e| e == "rs");
    !is_source
        && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|w| name.starts_with(w))
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

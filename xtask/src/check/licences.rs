//! Checks licences and sources of the dependencies by `deny.toml`. It uses cargo-deny if installed; otherwise it
//! makes the two checks that `cargo metadata` alone can answer.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context as _, Result, ensure};
use spdx::{Expression, ParseMode};

use crate::{
    command, files,
    workspace::{self, Package},
};

/// Checks what the workspace depends on.
pub fn check(root: &Path) -> Result<()> {
    if command::find("cargo-deny").is_some() {
        // Advisories need a database from the network: `cargo deny check` by hand has them.
        let words = "deny --locked --log-level error check bans licenses sources";
        return command::run(workspace::cargo().args(words.split(' ')));
    }
    command::say(
        "check",
        "cargo-deny is not installed: licences and sources only, bans and advisories unchecked",
    );
    let policy: toml::Table =
        files::read(&root.join("deny.toml"))?.parse().context("cannot read deny.toml")?;
    let allow = policy.get("licenses").and_then(|licences| licences.get("allow")?.clone().try_into().ok());
    let allow: BTreeSet<String> = allow.context("deny.toml has no licenses.allow")?;
    let packages = workspace::metadata(&["--locked"])?.packages;
    let findings: Vec<String> = packages.iter().filter_map(|package| judge(package, &allow)).collect();
    ensure!(findings.is_empty(), findings.join("\n"));
    Ok(())
}

/// What is wrong with a package, if something is.
fn judge(package: &Package, allow: &BTreeSet<String>) -> Option<String> {
    // The workspace's own packages have no source.
    let source = package.source.as_deref()?;
    let name = format!("{} {}", package.name, package.version);
    if !source.starts_with("registry+") && !source.starts_with("sparse+") {
        return Some(format!("{name}: comes from {source}, not from the registry"));
    }
    let Some(text) = package.license.as_deref() else { return Some(format!("{name}: states no licence")) };
    // Lax: old packages write "MIT/Apache-2.0".
    let Ok(expression) = Expression::parse_mode(text, ParseMode::LAX) else {
        return Some(format!("{name}: \"{text}\" is no SPDX expression"));
    };
    let allowed = expression.evaluate(|licence| allow.contains(&licence.to_string()));
    (!allowed).then(|| format!("{name}: licence {text} is not allowed by deny.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(license: Option<&str>, source: Option<&str>) -> Option<String> {
        let package = Package {
            name: "a".into(),
            version: "1.0.0".into(),
            license: license.map(Into::into),
            source: source.map(Into::into),
            authors: Vec::new(),
            manifest_path: "a/Cargo.toml".into(),
        };
        judge(&package, &["MIT", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into())
    }

    #[test]
    fn one_side_of_an_or_is_enough_and_both_of_an_and_are_needed() {
        let registry = Some("registry+here");
        assert_eq!(judged(Some("MIT"), registry), None);
        assert_eq!(judged(Some("GPL-3.0-only OR MIT"), registry), None);
        assert_eq!(judged(Some("Apache-2.0/MIT"), registry), None);
        assert_eq!(judged(Some("Apache-2.0 WITH LLVM-exception"), registry), None);
        assert!(judged(Some("MIT AND GPL-3.0-only"), registry).is_some());
        assert!(judged(Some("Apache-2.0"), registry).is_some());
        assert!(judged(None, registry).is_some());
    }

    #[test]
    fn only_the_registry_and_ourselves() {
        assert!(judged(Some("MIT"), Some("git+somewhere")).is_some());
        assert_eq!(judged(Some("Proprietary"), None), None);
    }
}

//! Checks licences and sources of the dependencies by `deny.toml`. It uses cargo-deny if installed; otherwise it
//! makes the two checks that `cargo metadata` alone can answer.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::{
    command,
    workspace::{self, Package},
};

/// The part of deny.toml that the fallback understands.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

/// Checks what the workspace depends on.
pub fn check(root: &Path) -> Result<()> {
    if command::find("cargo-deny").is_some() {
        // Advisories need a database from the network: `cargo deny check` by hand has them.
        return command::run(workspace::cargo().args([
            "deny",
            "--locked",
            "--log-level",
            "error",
            "check",
            "bans",
            "licenses",
            "sources",
        ]));
    }
    command::say(
        "check",
        "cargo-deny is not installed: licences and sources only, bans and advisories unchecked",
    );
    let path = root.join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let policy: Policy = toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    let findings: Vec<String> = workspace::metadata(&["--locked"])?
        .packages
        .iter()
        .filter_map(|p| judge(p, &policy.licenses.allow))
        .collect();
    if findings.is_empty() { Ok(()) } else { bail!("{}", findings.join("\n")) }
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

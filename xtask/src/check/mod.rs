//! `cargo xtask check`: the checks that a reviewer need not make by hand.
//!
//! Every step runs even if an earlier one failed, so one call shows everything that has to be fixed.

mod layers;
mod licences;
mod lints;
mod pages;
mod rooms;
mod scan;
mod style;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::{command, docs, setup, workspace};

/// The arguments of `check`.
#[derive(clap::Args)]
pub struct Args {
    /// Only these steps; all of them if none is named.
    #[arg(value_enum)]
    steps: Vec<Step>,
}

/// A step, in the order in which they run: the quick ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// rustfmt has nothing to change.
    Format,
    /// Length of files, headers of modules, words and paths that do not belong into the repository.
    Style,
    /// Links, anchors and the length of lines in README.md and docs/; the picture of the folders.
    Pages,
    /// The one-way rule of docs/architecture.md, and the purity of the core.
    Layers,
    /// Licences and sources of the dependencies, by deny.toml.
    Licences,
    /// clippy, warnings denied, for what runs in user space.
    Clippy,
    /// clippy, warnings denied, for the eBPF programs, on their own target.
    ClippyBpf,
    /// The generated parts of docs/ are what the code says.
    Reference,
    /// rustdoc, warnings denied.
    Docs,
}

/// The verb.
pub fn main(args: &Args) -> Result<()> {
    let steps = if args.steps.is_empty() { Step::value_variants() } else { &args.steps };
    let mut failed = Vec::new();
    for step in steps {
        let name = step.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        match step.run() {
            Ok(()) => command::say("check", &format!("{name}: ok")),
            Err(error) => {
                command::say("check", &format!("{name}: FAILED\n{error:#}"));
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("check failed: {}", failed.join(", "));
    }
    Ok(())
}

impl Step {
    fn run(self) -> Result<()> {
        let root = workspace::root();
        match self {
            Self::Format => command::run(workspace::cargo().args(["fmt", "--all", "--check"])),
            Self::Style => report(&style::findings(&root)?),
            Self::Pages => report(&[pages::findings(&root)?, rooms::findings(&root)?].concat()),
            Self::Layers => report(&layers::findings(&root)?),
            Self::Licences => licences::check(&root),
            Self::Clippy => setup::bpf().and_then(|_| lints::user()),
            Self::ClippyBpf => setup::bpf().and_then(|bpf| lints::bpf(&bpf)),
            Self::Reference => report(&stale()?),
            Self::Docs => setup::bpf().and_then(|_| lints::docs()),
        }
    }
}

/// Pages with a generated part that is not up to date.
fn stale() -> Result<Vec<String>> {
    let stale = docs::stale()?;
    Ok(stale.iter().map(|(path, _)| format!("{} is stale: run `cargo xtask docs`", path.display())).collect())
}

/// Findings, one a line, are a failure.
fn report(findings: &[String]) -> Result<()> {
    if findings.is_empty() { Ok(()) } else { bail!("{}", findings.join("\n")) }
}

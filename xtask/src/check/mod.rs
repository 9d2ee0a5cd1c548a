//! `cargo xtask check`: the checks that a reviewer need not make by hand.
//!
//! Every step runs even if an earlier one failed, so one call shows everything that has to be fixed.

mod layers;
mod licences;
mod lints;
mod pages;
mod scan;
mod style;

use anyhow::{Result, ensure};
use clap::ValueEnum;

use crate::{command, docs, setup, workspace};

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

pub fn main(args: &Args) -> Result<()> {
    let steps = if args.steps.is_empty() { Step::value_variants() } else { &args.steps };
    command::each("check", steps, |step| step.run())
}

impl Step {
    fn run(self) -> Result<()> {
        let root = workspace::root();
        match self {
            Self::Format => command::run(workspace::cargo().args(["fmt", "--all", "--check"])),
            Self::Style => report(&style::findings(&root)?),
            Self::Pages => report(&pages::findings(&root)?),
            Self::Layers => report(&layers::findings(&root)?),
            Self::Licences => licences::check(&root),
            Self::Clippy => with_bpf(&["clippy"], &["--all-targets", "--", "-D", "warnings"]),
            Self::ClippyBpf => setup::bpf().and_then(|bpf| lints::bpf(&bpf)),
            Self::Reference => {
                let stale = docs::stale()?.into_iter().map(|(path, _)| path.display().to_string());
                report(
                    &stale.map(|path| format!("{path} is stale: run `cargo xtask docs`")).collect::<Vec<_>>(),
                )
            }
            // That of private items included: contributors read it.
            Self::Docs => with_bpf(&["doc", "--no-deps", "--document-private-items"], &[]),
        }
    }
}

/// cargo on all packages but that of the eBPF programs, which must be there.
fn with_bpf(before: &[&str], after: &[&str]) -> Result<()> {
    setup::bpf()?;
    let mut cargo = workspace::cargo();
    cargo.args(before).arg("--quiet").args(workspace::WHAT).args(after).env("RUSTDOCFLAGS", "-D warnings");
    command::run(&mut cargo)
}

/// Findings, one a line, are a failure.
fn report(findings: &[String]) -> Result<()> {
    ensure!(findings.is_empty(), findings.join("\n"));
    Ok(())
}

//! Development tasks of orphand: `cargo xtask VERB`.
//!
//! There is one module for each verb. Nothing here is part of the product, and nothing here depends on it: `setup`
//! must compile before the product can, because the build script of the product needs what `setup` finds.

mod bench;
mod check;
mod command;
mod dist;
mod docs;
mod files;
mod fresh;
mod fuzz;
mod judgement;
mod pictures;
mod privilege;
mod run;
mod setup;
mod test;
mod vm;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "orphand's chores", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Find or install what it takes to build the eBPF programs (and, with --tests, to run every test).
    Setup(setup::Args),
    /// Build the daemon and run it: `cargo xtask run -- --observe`.
    Run(run::Args),
    /// Run every test, those that need root and the real kernel included.
    Test(test::Args),
    /// Try what orphand reads from others on bytes that libFuzzer makes up, guided by what they reach.
    Fuzz(fuzz::Args),
    /// Make situations up, play them with real processes, and keep what was judged wrongly.
    Hunt(judgement::Args),
    /// Formatting, lints, links, generated pages, licences, the one-way rule of the modules.
    Check(check::Args),
    /// Write the parts of docs/ that are generated from the code.
    Docs,
    /// Make the pictures in docs/ from a real run.
    Pictures,
    /// Measure what the daemon costs and how quick it is; needs root, takes a quarter of an hour.
    Bench(bench::Args),
    /// Make what is handed out, in target/dist: the static binary, a .deb, an archive, SHA256SUMS.
    Dist(dist::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Setup(args) => setup::main(&args),
        Verb::Run(args) => run::main(&args),
        Verb::Test(args) => test::main(&args),
        Verb::Fuzz(args) => fuzz::main(&args),
        Verb::Hunt(args) => judgement::hunt(&args),
        Verb::Check(args) => check::main(&args),
        Verb::Docs => docs::main(),
        Verb::Pictures => pictures::main(),
        Verb::Bench(args) => bench::main(&args),
        Verb::Dist(args) => dist::main(&args),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}

//! `hunt [--seed S] [--minutes N]`: plays situations that are made up, and keeps what was judged wrongly.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use clap::Parser;
use tests::judgement;

#[derive(Parser)]
#[command(about = "Plays situations that are made up and keeps what was judged wrongly as scripts")]
struct Args {
    /// What the first batch is made from; each further batch takes the next number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long new batches are begun; one is played at least.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Only tell what was judged wrongly: do not make it smaller, nor keep it.
    #[arg(long)]
    tell: bool,
}

fn main() -> ExitCode {
    match hunt(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hunt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn hunt(args: &Args) -> Result<()> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("situations/hunted");
    let keep = (!args.tell).then_some(found.as_path());
    let hunt = judgement::hunt(args.seed, Instant::now() + Duration::from_secs(60 * args.minutes), keep)?;
    println!(
        "\nsituations: {}, not built: {}\nrecall: {} of {} with true orphans\njudged wrongly: {}",
        hunt.played,
        hunt.unbuilt,
        hunt.cleaned,
        hunt.orphaned,
        hunt.wrong.len()
    );
    if !hunt.wrong.is_empty() {
        bail!("something in use was ended, in {} situations", hunt.wrong.len());
    }
    Ok(())
}

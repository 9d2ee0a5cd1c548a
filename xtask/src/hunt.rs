//! `cargo xtask hunt`: plays situations that are made up against the daemon, for as long as a person lets it. What is
//! judged wrongly is made small and kept in tests/situations/hunted.

use anyhow::Result;

use crate::{command, privilege};

#[derive(clap::Args)]
pub struct Args {
    /// What the first batch is made from: the same number gives the same situations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long; one batch of 24 is played at least.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Only tell what was judged wrongly: do not make it smaller, nor keep it.
    #[arg(long)]
    tell: bool,
}

pub fn main(args: &Args) -> Result<()> {
    let mut hunt = privilege::built("hunt", "hunting with real processes")?;
    hunt.args(["--seed", &args.seed.to_string(), "--minutes", &args.minutes.to_string()]);
    hunt.args(args.tell.then_some("--tell"));
    command::run(&mut hunt)
}

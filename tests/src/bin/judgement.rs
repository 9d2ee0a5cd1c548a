//! `judgement [FILTER] [--judge COMMAND | --restart]`: plays the situations and prints the table; a whole one is written to
//! docs/judgement.md.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use clap::Parser;
use tests::judgement::{self, Judge};

#[derive(Parser)]
#[command(about = "Plays every situation and says how it was judged")]
struct Args {
    /// Only situations whose name (group/name) contains this.
    filter: Option<String>,
    /// Another judge: a command that prints the numbers of the processes it would end, one a line.
    #[arg(long, value_name = "COMMAND")]
    judge: Option<String>,
    /// Restarts the daemon again and again while the situations are built.
    #[arg(long, conflicts_with = "judge")]
    restart: bool,
}

fn main() -> ExitCode {
    match judge(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("judgement: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn judge(args: &Args) -> Result<()> {
    let scripts = judgement::scripts(args.filter.as_deref())?;
    let judge = match args.judge.as_deref() {
        Some(command) => Judge::Command(command),
        None => Judge::Daemon { restarts: args.restart },
    };
    let lines = judgement::run(&scripts, judge)?;
    for line in &lines {
        println!("{line}");
    }
    println!("\n{}", judgement::Summary::of(&lines));
    if args.filter.is_none() && args.judge.is_none() && !args.restart {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/judgement.md");
        judgement::write(&page, &lines)?;
    }
    judgement::all_right(&lines)
}

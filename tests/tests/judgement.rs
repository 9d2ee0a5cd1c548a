//! Every situation is judged right: the true orphans are ended, nothing in use is.

use anyhow::Result;
use tests::judgement::{self, Judge};

/// All situations at once, as many as there are; `cargo xtask test judgement` prints the table.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn every_situation_is_judged_right() -> Result<()> {
    let lines = judgement::run(&judgement::scripts(None)?, Judge::Daemon { restarts: false })?;
    println!("\n{}", judgement::Summary::of(&lines));
    judgement::all_right(&lines)
}

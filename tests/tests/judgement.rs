//! Every situation is judged right: the true orphans are ended, nothing in use is.

use anyhow::Result;
use tests::judgement;

/// All situations at once, as many as there are; the table is printed.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn every_situation_is_judged_right() -> Result<()> {
    let lines = judgement::run(&judgement::scripts(None)?, None)?;
    for line in &lines {
        println!("{line}");
    }
    println!("\n{}", judgement::Summary::of(&lines));
    judgement::all_right(&lines)
}

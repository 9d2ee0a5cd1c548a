//! `cargo xtask test vm`: orphand in a virtual machine, with a Debian kernel and with systemd as the real pid 1.
//! `tests/vm/machine.sh` makes and boots the machine, `tests/vm/judge.py` judges what the guest reported.

use std::{process::Command, time::Instant};

use anyhow::{Result, ensure};

use crate::{setup, workspace};

/// The test.
pub fn main() -> Result<()> {
    setup::bpf()?;
    setup::install(setup::VM)?;
    let (root, built, target) = (workspace::root(), workspace::build()?, workspace::target_dir()?);
    let begun = Instant::now();
    let mut machine = Command::new(root.join("tests/vm/machine.sh"));
    let done = machine.args([built, target.join("vm"), root.join(".cache/vm")]).status()?;
    ensure!(done.success(), "the test on a machine of its own failed (above)");
    println!("xtask: vm: {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_finds_what_is_wrong() {
        let judge = workspace::root().join("tests/vm/judge_tests.py");
        crate::command::output(Command::new("python3").arg("-B").arg(judge)).unwrap();
    }
}

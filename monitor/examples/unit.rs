//! Which unit a process lives in and what its manager says: `cargo run --example unit -- PID...`, one JSON value a line.

use anyhow::Context as _;
use orphand::{host::Proc, probe::Probe};

fn main() -> anyhow::Result<()> {
    let (proc, probe) = (Proc::system()?, Probe::new()?);
    for arg in std::env::args().skip(1) {
        let dir =
            proc.process(arg.parse()?).with_context(|| format!("cannot read process {arg} in /proc"))?;
        println!("{}", serde_json::to_string(&probe.unit(dir.id()))?);
    }
    Ok(())
}

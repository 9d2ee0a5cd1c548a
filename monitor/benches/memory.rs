//! What reading the memory of 600 processes costs: `cargo bench -p orphand --bench memory`. Aim: resident memory below 5 ms.

use std::process::{Child, Command, Stdio};

use orphand::{host::Proc, probe::Probe};
use orphand_core::model::{About, ProcessId};

const PROCESSES: usize = 600;

/// Sleepers that end with the bench.
struct Crowd(Vec<Child>);

impl Crowd {
    fn start() -> Self {
        let sleeper = || Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Self((0..PROCESSES).filter_map(|_| sleeper().ok()).collect())
    }

    fn ids(&self) -> Vec<ProcessId> {
        let Ok(proc) = Proc::system() else { return Vec::new() };
        self.0.iter().filter_map(|child| Some(proc.process(child.id()).ok()?.id())).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn main() {
    divan::main();
}

#[divan::bench]
fn resident(bencher: divan::Bencher<'_, '_>) {
    let crowd = Crowd::start();
    let Ok(probe) = Probe::new() else { return };
    let about = About::Memory(crowd.ids());
    bencher.bench_local(|| probe.answer(&about));
}

#[divan::bench(sample_count = 20)]
fn proportional(bencher: divan::Bencher<'_, '_>) {
    let crowd = Crowd::start();
    let Ok(proc) = Proc::system() else { return };
    let ids = crowd.ids();
    bencher.bench_local(|| ids.iter().map(|id| proc.proportional(*id)).filter_map(Result::ok).sum::<u64>());
}

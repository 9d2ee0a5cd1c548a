//! One target under libFuzzer: `cargo xtask fuzz TARGET` builds this with coverage counters and runs it. The variable
//! `ORPHAND_FUZZ_TARGET` names the target; the arguments are libFuzzer's.
#![no_main]

use std::{process::exit, sync::OnceLock};

use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<fuzz::Target> = OnceLock::new();

fn choose() {
    let name = std::env::var("ORPHAND_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = fuzz::TARGETS.iter().find(|target| target.name == name) else {
        eprintln!("there is no target \"{name}\"; set ORPHAND_FUZZ_TARGET, or use cargo xtask fuzz");
        exit(2);
    };
    let _ = TARGET.set(*target);
}

fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = TARGET.get().filter(|target| data.len() <= target.longest) {
        (target.run)(data);
    }
});

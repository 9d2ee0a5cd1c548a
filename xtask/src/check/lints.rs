//! clippy for the eBPF programs.

use std::{env, process::Command};

use anyhow::{Result, ensure};

use crate::{
    command,
    setup::{self, Bpf, TARGET},
    workspace,
};

/// The eBPF crate on its own target, with the clippy that belongs to the compiler that builds it.
///
/// rustup's clippy has no `core` for BPF, and a run on the host's target would not see the code that is
/// there for BPF only.
pub fn bpf(bpf: &Bpf) -> Result<()> {
    let clippy = bpf.rustc.with_file_name("cargo-clippy");
    if !command::is_executable(&clippy) && bpf.rustc.starts_with("/usr/bin") {
        setup::clippy()?;
    }
    ensure!(
        command::is_executable(&clippy),
        "{} is missing: install the clippy of that compiler (Debian: apt-get install rust-web-clippy; \
         rustup: rustup component add clippy --toolchain {})",
        clippy.display(),
        bpf.toolchain.as_deref().unwrap_or("nightly"),
    );
    let mut command = Command::new(clippy);
    command
        .args(["clippy", "--quiet", "--locked", "--target", TARGET, "--target-dir"])
        .arg(workspace::target_dir()?.join("clippy-bpf"))
        .args(bpf.build_std.then_some("-Zbuild-std=core"))
        .args(["--", "-D", "warnings"])
        .current_dir(workspace::root().join("monitor-ebpf"))
        .env("RUSTC", &bpf.rustc);
    // cargo-clippy takes cargo from PATH: where rustup knows the compiler, its own cargo has to come first.
    if bpf.toolchain.is_some() {
        let own = bpf.rustc.parent().map(Into::into).into_iter();
        let path = env::var_os("PATH").unwrap_or_default();
        command.env("PATH", env::join_paths(own.chain(env::split_paths(&path)))?).env_remove("CARGO");
    }
    command::run(command.envs(bpf.bootstrap.then_some(("RUSTC_BOOTSTRAP", "1"))))
}

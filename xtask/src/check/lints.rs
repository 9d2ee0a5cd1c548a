//! The checks of the compiler, of clippy and of rustdoc, with warnings denied.

use std::{env, process::Command};

use anyhow::{Result, bail};

use crate::{
    command,
    setup::{self, Bpf, TARGET},
    workspace,
};

/// Everything but the eBPF crate, tests and benches included.
pub fn user() -> Result<()> {
    command::run(
        workspace::cargo()
            .args(["clippy", "--quiet", "--workspace", "--exclude", "monitor-ebpf", "--all-targets"])
            .args(["--", "-D", "warnings"]),
    )
}

/// The eBPF crate on its own target, with the clippy that belongs to the compiler that builds it.
///
/// rustup's clippy has no `core` for BPF, and a run on the host's target would not see the code that is
/// there for BPF only.
pub fn bpf(bpf: &Bpf) -> Result<()> {
    let clippy = bpf.rustc.with_file_name("cargo-clippy");
    if !command::is_executable(&clippy) && bpf.rustc.starts_with("/usr/bin") {
        setup::install_clippy()?;
    }
    if !command::is_executable(&clippy) {
        bail!(
            "{} is missing: install the clippy of that compiler (Debian: apt-get install rust-web-clippy; \
             rustup: rustup component add clippy --toolchain {})",
            clippy.display(),
            bpf.toolchain.as_deref().unwrap_or("nightly"),
        );
    }
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
    if bpf.bootstrap {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command::run(&mut command)
}

/// The documentation, that of private items included: contributors read it.
pub fn docs() -> Result<()> {
    command::run(
        workspace::cargo()
            .args(["doc", "--quiet", "--workspace", "--exclude", "monitor-ebpf"])
            .args(["--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

//! In place of the crate of this name: what the build scripts of aya-ebpf need of it.
//!
//! That crate also builds eBPF programs, which monitor/build.rs does, and brings `cargo_metadata` and serde for it: half of the time
//! that a build of the programs took.

/// The outcome of a build script.
pub type Result<T> = std::io::Result<T>;

/// Tells aya-ebpf for which machine the programs are: this one. The names are those of `target_arch`.
///
/// # Errors
/// None; the build scripts hand on what they get.
pub fn emit_bpf_target_arch_cfg() -> Result<()> {
    println!("cargo:rustc-cfg=bpf_target_arch=\"{}\"", std::env::consts::ARCH);
    println!("cargo:rustc-check-cfg=cfg(bpf_target_arch, values(any()))");
    Ok(())
}

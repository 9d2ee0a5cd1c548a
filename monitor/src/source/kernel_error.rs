//! Why the kernel side cannot work, in one line each: what, why, what to do.

use std::io;

use aya::{EbpfError, maps::MapError, programs::ProgramError};
use thiserror::Error;

use orphand_core::model::text::with_causes;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct KernelError(pub(super) String);

impl From<MapError> for KernelError {
    fn from(error: MapError) -> Self {
        Self(format!("cannot use a BPF map: {}", with_causes(&error)))
    }
}

impl KernelError {
    /// The kernel tells nothing of its types.
    pub fn no_btf(path: &str, error: &io::Error) -> Self {
        Self(format!("cannot read {path} ({error}): orphand needs a kernel built with CONFIG_DEBUG_INFO_BTF"))
    }

    /// `what` it does not have, or has otherwise.
    pub(super) fn layout(what: &str) -> Self {
        let lacks = "the kernel's type information does not have what orphand reads";
        Self(format!("{lacks}: {what}; please report this kernel"))
    }

    /// The object does not fit this program: a broken build.
    pub(super) fn no_object(name: &str) -> Self {
        Self(format!("the embedded BPF object has no `{name}`: the build is broken"))
    }

    pub(super) fn load(error: &EbpfError) -> Self {
        match error {
            EbpfError::MapError(MapError::CreateError { io_error, .. })
                if io_error.kind() == io::ErrorKind::PermissionDenied =>
            {
                let advice = "look for lockdown, a security module or a container's seccomp filter";
                Self(format!("the kernel refuses BPF ({io_error}): {advice}"))
            }
            EbpfError::MapError(MapError::CreateError { name, io_error }) if name == "RECORDS" => {
                let advice = "orphand needs Linux 5.8 or later";
                Self(format!("this kernel cannot make a BPF ring buffer ({io_error}): {advice}"))
            }
            other => Self(format!("cannot load the BPF object: {}", with_causes(other))),
        }
    }

    pub(super) fn program(hook: &str, error: &ProgramError) -> Self {
        let ProgramError::LoadError { io_error, verifier_log } = error else {
            return Self(format!("cannot attach to {hook}: {}", with_causes(error)));
        };
        let log = verifier_log.to_string();
        // Statistics come last, the reason before them.
        let statistics = ["processed ", "stack depth ", "verification time "];
        let mut words = log.lines().rev().map(str::trim);
        let last = words.find(|line| !line.is_empty() && !statistics.iter().any(|s| line.starts_with(s)));
        let reason = last.map_or_else(|| io_error.to_string(), str::to_owned);
        tracing::debug!(program = hook, %log, "the verifier's log");
        Self(format!("the kernel's verifier refuses the program {hook}: {reason}; please report this kernel"))
    }
}

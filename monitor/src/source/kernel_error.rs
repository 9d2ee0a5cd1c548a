//! Why the kernel side cannot work, in one line each: what, why, what to do.

use std::io;

use aya::{EbpfError, maps::MapError, programs::ProgramError};
use thiserror::Error;

use super::layout::LayoutError;

/// Why the kernel side cannot work.
#[derive(Debug, Error)]
pub enum KernelError {
    /// No root, no capability.
    #[error("watching the kernel needs {missing}: run orphand as root, or give it these capabilities")]
    Rights {
        /// What is missing.
        missing: &'static str,
    },
    /// In a container.
    #[error(
        "orphand runs in a PID namespace of its own and would see wrong process numbers: run it on the host, or in a container with the host's PID namespace"
    )]
    PidNamespace,
    /// No BTF.
    #[error("cannot read {path} ({source}): orphand needs a kernel built with CONFIG_DEBUG_INFO_BTF")]
    NoBtf {
        /// The file.
        path: &'static str,
        /// Why.
        source: io::Error,
    },
    /// BTF without what is needed.
    #[error("the kernel's type information does not have what orphand reads: {0}; please report this kernel")]
    Layout(#[from] LayoutError),
    /// Before 5.8.
    #[error("this kernel cannot make a BPF ring buffer ({0}): orphand needs Linux 5.8 or later")]
    NoRingBuffer(io::Error),
    /// The system refused BPF.
    #[error(
        "the kernel refuses BPF ({0}): look for lockdown, a security module or a container's seccomp filter"
    )]
    Refused(io::Error),
    /// The verifier refused a program.
    #[error("the kernel's verifier refuses the program {program}: {reason}; please report this kernel")]
    Verifier {
        /// The program.
        program: &'static str,
        /// The verifier's last words.
        reason: String,
    },
    /// A hook cannot be attached.
    #[error("cannot attach to {hook}: {reason}")]
    Attach {
        /// The hook.
        hook: &'static str,
        /// Why.
        reason: String,
    },
    /// No tracefs.
    #[error(
        "{hook} needs tracefs, which cannot be mounted at {path} ({source}): mount it, or do without with --setsid none"
    )]
    Tracefs {
        /// The hook.
        hook: &'static str,
        /// Where it belongs.
        path: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The object does not fit this program: a broken build.
    #[error("the embedded BPF object has no `{0}`: the build is broken")]
    Object(&'static str),
    /// The object could not be loaded.
    #[error("cannot load the BPF object: {0}")]
    Load(Box<EbpfError>),
    /// A map could not be used.
    #[error("cannot use a BPF map: {0}")]
    Map(#[from] MapError),
    /// The self-test failed.
    #[error("the self-test failed: {0}")]
    SelfTest(String),
}

impl KernelError {
    /// Loading the maps failed.
    pub(super) fn load(error: EbpfError) -> Self {
        match error {
            EbpfError::MapError(MapError::CreateError { name, io_error }) => match io_error.kind() {
                io::ErrorKind::PermissionDenied => Self::Refused(io_error),
                _ if name == "RECORDS" => Self::NoRingBuffer(io_error),
                _ => Self::Load(Box::new(EbpfError::MapError(MapError::CreateError { name, io_error }))),
            },
            other => Self::Load(Box::new(other)),
        }
    }

    /// Loading or attaching a program failed.
    pub(super) fn program(hook: &'static str, error: &ProgramError) -> Self {
        match error {
            ProgramError::LoadError { io_error, verifier_log } => {
                let log = verifier_log.to_string();
                // Statistics come last, the reason before them.
                let statistics = ["processed ", "stack depth ", "verification time "];
                let mut words = log.lines().rev().map(str::trim);
                let last =
                    words.find(|line| !line.is_empty() && !statistics.iter().any(|s| line.starts_with(s)));
                let reason = last.map_or_else(|| io_error.to_string(), str::to_owned);
                tracing::debug!(program = hook, %log, "the verifier's log");
                Self::Verifier { program: hook, reason }
            }
            other => Self::Attach { hook, reason: chain(other) },
        }
    }
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}

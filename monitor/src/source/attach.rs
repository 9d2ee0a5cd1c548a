//! Attaching the programs, and what that needs of the system.

use std::{
    io,
    path::{Path, PathBuf},
    thread,
};

use aya::{
    Btf, Ebpf,
    programs::{FExit, Program, ProgramError, RawTracePoint, TracePoint},
};
use rustix::{
    mount::{MountFlags, mount},
    process::{Resource, Rlimit, setrlimit},
    system::uname,
    thread::CapabilitySet,
};

use super::kernel_error::KernelError;
use crate::{host::own_namespace, os::capabilities};
use orphand_core::model::SetsidHook;

const FORK: &str = "sched_process_fork";
const EXEC: &str = "sched_process_exec";
const EXIT: &str = "sched_process_exit";
pub(super) const SIGNAL: &str = "signal_generate";
/// The hook that tells who sends a signal.
pub const SIGNAL_HOOK: &str = "raw_tracepoint:signal_generate";
pub(super) const CONNECTION: &str = "inet_sock_set_state";
/// The hook that tells who calls.
pub const CALL_HOOK: &str = "raw_tracepoint:inet_sock_set_state";

/// What a system call does, by a function of the kernel, or else by the call's tracepoint.
struct CallHook {
    function: &'static str,
    tracepoint: &'static str,
}

const SETSID: CallHook = CallHook { function: "ksys_setsid", tracepoint: "sys_exit_setsid" };
/// Who wants a TCP port for himself.
const BIND: CallHook = CallHook { function: "inet_csk_get_port", tracepoint: "sys_enter_bind" };

/// A namespace that must be the host's.
#[derive(Debug)]
pub struct HostNamespace {
    pub name: &'static str,
    kind: &'static str,
    /// The link of the host's: the inodes are those of the kernel's `proc_ns.h`.
    initial: &'static str,
    /// What is wrong in another one.
    otherwise: &'static str,
    advice: &'static str,
}

/// The records carry the numbers of the initial PID namespace; /proc shows those of ours. Units, and what is exempt by them, are found
/// by the paths of control groups, which begin at the root of our namespace. The times of calls are those of the host's clock.
pub const HOST_NAMESPACES: [HostNamespace; 3] = [
    HostNamespace {
        name: "PID namespace",
        kind: "pid",
        initial: "pid:[4026531836]",
        otherwise: "would see wrong process numbers",
        advice: "--pid=host",
    },
    HostNamespace {
        name: "cgroup namespace",
        kind: "cgroup",
        initial: "cgroup:[4026531835]",
        otherwise: "would not see which unit a process belongs to",
        advice: "--cgroupns=host",
    },
    HostNamespace {
        name: "time namespace",
        kind: "time",
        initial: "time:[4026531834]",
        otherwise: "would not know when a server was called",
        advice: "no lxc.time.offset",
    },
];

/// Without one of these nothing can be seen, proven or ended, and nobody would be told so later.
pub fn require_rights(wanted: CapabilitySet) -> Result<(), KernelError> {
    let missing = capabilities::missing(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let missing = capabilities::names(missing);
    Err(KernelError(format!("orphand needs {missing}: run it as root, or give it these capabilities")))
}

impl HostNamespace {
    pub fn require(&self) -> Result<(), KernelError> {
        self.judge(own_namespace(self.kind))
    }

    fn judge(&self, link: io::Result<PathBuf>) -> Result<(), KernelError> {
        let Self { name, initial, otherwise, advice, .. } = self;
        match link {
            Ok(link) if link != Path::new(initial) => {
                let remedy = format!("run it on the host, or in a container with the host's ({advice})");
                Err(KernelError(format!("orphand runs in a {name} of its own and {otherwise}: {remedy}")))
            }
            // The kernel has no such namespaces. Without /proc the self-test will tell.
            _ => Ok(()),
        }
    }
}

pub fn require_host_namespaces() -> Result<(), KernelError> {
    HOST_NAMESPACES.iter().try_for_each(HostNamespace::require)
}

/// Before 5.11 maps counted against this limit; since then against the memory cgroup, and it is left as it is.
pub fn raise_memlock() {
    if !maps_count_as_locked(&uname().release().to_string_lossy()) {
        return;
    }
    let unlimited = Rlimit { current: None, maximum: None };
    if let Err(error) = setrlimit(Resource::Memlock, unlimited) {
        let remedy = "give it CAP_SYS_RESOURCE, or LimitMEMLOCK=infinity in its unit";
        tracing::warn!(%error, "cannot raise RLIMIT_MEMLOCK, against which this kernel counts BPF maps; {remedy}");
    }
}

/// Whether a kernel of this release, for instance `6.18.5-foo`, counts BPF maps against `RLIMIT_MEMLOCK`.
pub fn maps_count_as_locked(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (5, 11),
        _ => false,
    }
}

/// Loads what is attached and begun later, on two threads: to verify one takes the kernel up to 20 ms. Why one cannot be loaded is
/// told where it is needed, which loads it again.
pub(super) fn load_ahead(programs: &mut Ebpf, btf: &Btf) {
    let (mut passes, mut hooks) = (Vec::new(), Vec::new());
    for (name, program) in programs.programs_mut() {
        match program {
            Program::Iter(pass) => passes.push((name, pass)),
            Program::RawTracePoint(hook) => hooks.push(hook),
            _ => {}
        }
    }
    let load_passes = || {
        for (name, pass) in passes {
            drop(pass.load(name, btf));
        }
    };
    thread::scope(|scope| {
        drop(thread::Builder::new().spawn_scoped(scope, load_passes));
        for hook in hooks {
            drop(hook.load());
        }
    });
}

/// Whether a program is loaded now, also if it was before.
pub(super) fn loaded(outcome: Result<(), ProgramError>) -> Result<(), ProgramError> {
    match outcome {
        Err(ProgramError::AlreadyLoaded) => Ok(()),
        outcome => outcome,
    }
}

/// Attaches what nothing can be watched without, and the hook on setsid(2); names the hooks in use.
pub(super) fn attach(programs: &mut Ebpf, setsid: SetsidHook, btf: &Btf) -> Result<Vec<String>, KernelError> {
    // Ends before beginnings: whatever is seen to begin is seen to end.
    for hook in [EXIT, FORK, EXEC] {
        raw_tracepoint(programs, hook)?;
    }
    let mut hooks: Vec<String> = [FORK, EXEC, EXIT].map(|hook| format!("raw_tracepoint:{hook}")).to_vec();
    let hook = SETSID.attach(programs, setsid, btf);
    let without = "sessions are read from /proc before each verdict";
    hooks.extend(match setsid {
        SetsidHook::Auto => optional("setsid", without, hook).flatten(),
        _ => hook?,
    });
    Ok(hooks)
}

/// Attaches the hook on bind(2), and names it.
pub(super) fn bind(programs: &mut Ebpf, by: SetsidHook, btf: &Btf) -> Option<String> {
    let without = "who wanted a port that another has is not seen before he calls that one";
    optional("bind", without, BIND.attach(programs, by, btf)).flatten()
}

/// What may be lacking: no reason not to watch. The log says what orphand has to do without.
pub(super) fn optional<T>(what: &str, without: &str, opened: Result<T, KernelError>) -> Option<T> {
    opened.inspect_err(|error| tracing::warn!("{what}: {error}; going on without: {without}")).ok()
}

pub(super) fn raw_tracepoint(programs: &mut Ebpf, hook: &'static str) -> Result<(), KernelError> {
    let program: &mut RawTracePoint = program(programs, hook)?;
    let attached = loaded(program.load()).and_then(|()| program.attach(hook));
    attached.map(drop).map_err(|error| KernelError::program(hook, &error))
}

impl CallHook {
    /// Names what is attached.
    fn attach(&self, programs: &mut Ebpf, by: SetsidHook, btf: &Btf) -> Result<Option<String>, KernelError> {
        match by {
            SetsidHook::None => return Ok(None),
            SetsidHook::Fentry => self.to_function(programs, btf),
            SetsidHook::Tracepoint => self.to_tracepoint(programs),
            // The cheapest that this kernel allows. Debian's kernels allow the tracepoint to CAP_SYS_ADMIN alone
            // (kernel.perf_event_paranoid=3).
            SetsidHook::Auto => self.to_function(programs, btf).or_else(|error| {
                tracing::debug!(%error, "{} in place of {}", self.tracepoint, self.function);
                self.to_tracepoint(programs)
            }),
        }
        .map(Some)
    }

    fn to_function(&self, programs: &mut Ebpf, btf: &Btf) -> Result<String, KernelError> {
        let name = self.function;
        let program: &mut FExit = program(programs, name)?;
        let attached = program.load(name, btf).and_then(|()| program.attach());
        attached.map(|_| format!("fexit:{name}")).map_err(|error| KernelError::program(name, &error))
    }

    fn to_tracepoint(&self, programs: &mut Ebpf) -> Result<String, KernelError> {
        let name = self.tracepoint;
        mount_tracefs(name)?;
        let program: &mut TracePoint = program(programs, name)?;
        let attached = program.load().and_then(|()| program.attach("syscalls", name));
        attached.map_err(|error| KernelError::program(name, &error))?;
        Ok(format!("tracepoint:syscalls:{name}"))
    }
}

/// Where tracefs is mounted, or is mounted when it is needed.
pub const TRACEFS: &str = "/sys/kernel/tracing";

/// Whether tracefs is there: ordinary tracepoints are named in it.
pub fn has_tracefs() -> bool {
    Path::new(TRACEFS).join("events").exists() || Path::new("/sys/kernel/debug/tracing/events").exists()
}

fn mount_tracefs(wanted_by: &str) -> Result<(), KernelError> {
    if has_tracefs() {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tracefs", TRACEFS, "tracefs", flags, None).map_err(|errno| {
        let error = io::Error::from(errno);
        let what = format!("{wanted_by} needs tracefs, which cannot be mounted at {TRACEFS} ({error})");
        KernelError(format!("{what}: mount it, or do without with --setsid none"))
    })
}

pub(super) fn program<'a, P>(programs: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, KernelError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    programs.program_mut(name).and_then(|p| p.try_into().ok()).ok_or_else(|| KernelError::no_object(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_the_hosts_is_refused() {
        for one in &HOST_NAMESPACES {
            assert_eq!(one.judge(Ok(one.initial.into())), Ok(()));
            let own = one.judge(Ok(format!("{}:[4026532000]", one.kind).into())).unwrap_err().to_string();
            assert!(own.contains(one.name) && own.ends_with(&format!("({})", one.advice)), "{own}");
            assert_eq!(one.judge(Err(io::ErrorKind::NotFound.into())), Ok(()), "a kernel without cgroups");
        }
        assert_eq!(require_host_namespaces(), Ok(()), "these tests run on a host");
    }
}

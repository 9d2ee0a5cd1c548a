//! Where the running kernel keeps what the eBPF programs read: [`Offsets`] and others out of BTF. Pure and total.

use std::collections::HashMap;

use monitor_common::{CallOffsets, EndOffsets, Offsets, SignalOffsets, TaskOffsets, WAYS};

use super::{
    btf::{Btf, Type, TypeId, kind},
    kernel_error::KernelError,
};

#[derive(Clone, Debug)]
pub struct Layout {
    pub events: Offsets,
    /// Whether the tracepoint `sched_process_exit` has the argument `group_dead`.
    pub exit_has_group_dead: bool,
    /// Whether references to files are counted from 0.
    pub counts_files_from_zero: bool,
    /// Where `sock.sk_userlocks` is, in bits; 0 if there is none.
    pub sock_userlocks: u32,
    /// Where `tty_struct.link` and `tty_struct.index` are; 0 if one of them is not there.
    pub tty: [u32; 2],
    /// BTF of the functions that programs are attached to.
    pub functions: Vec<u8>,
    // What a kernel may lack: then what reads it is left out.
    pub signals: Result<SignalOffsets, KernelError>,
    pub calls: Result<CallOffsets, KernelError>,
    pub ends: Result<EndOffsets, KernelError>,
    pub tasks: Result<TaskOffsets, KernelError>,
}

pub fn read(btf: &[u8]) -> Result<Layout, KernelError> {
    let btf = Btf::parse(btf)
        .map_err(|error| KernelError::layout(&format!("the kernel's type information {error}")))?;
    let kernel = Kernel::new(btf);
    let place = |way, size| kernel.place(way, size);
    kernel.arguments("sched_process_fork", 2)?;
    kernel.arguments("sched_process_exec", 3)?;
    let exit = kernel.arguments("sched_process_exit", 1)?;
    let (link, index) = (place("tty_struct.link", 8), place("tty_struct.index", 4));
    let tty = link.and_then(|link| Ok([link, index?]));
    Ok(Layout {
        events: Offsets::read(place)?,
        // `bool group_dead`: one byte. Anything else in its place is not it.
        exit_has_group_dead: exit.get(1).is_some_and(|&ty| kernel.btf.size(ty) == Some(1)),
        counts_files_from_zero: kernel.place("file.f_ref", 8).is_ok(),
        sock_userlocks: kernel.place("sock.sk_userlocks:", 0).unwrap_or(0),
        tty: tty.unwrap_or_default(),
        functions: kernel.btf.only_functions(&[
            "ksys_setsid",
            "inet_csk_get_port",
            "bpf_iter_task",
            "bpf_iter_task_file",
        ]),
        signals: kernel.arguments("signal_generate", 5).and_then(|_| SignalOffsets::read(place)),
        calls: kernel.arguments("inet_sock_set_state", 3).and_then(|_| CallOffsets::read(place)),
        ends: EndOffsets::read(place),
        tasks: TaskOffsets::read(place),
    })
}

/// What BTF calls the type of a tracepoint's probes.
const TRACEPOINT: &str = "btf_trace_";
/// The enumeration of what an array of PIDs has.
const PID_TYPE: &str = "pid_type";

struct Kernel<'a> {
    btf: Btf<'a>,
    /// The structures that ways begin with, the types of tracepoints, and [`PID_TYPE`].
    by_name: HashMap<&'a [u8], Type<'a>>,
}

impl<'a> Kernel<'a> {
    fn new(btf: Btf<'a>) -> Self {
        let mut roots: Vec<&[u8]> =
            WAYS.iter().filter_map(|way| way.split('.').next()).map(str::as_bytes).collect();
        roots.sort_unstable();
        roots.dedup();
        let mut by_name = HashMap::new();
        for (_, ty) in btf.types() {
            let is_wanted: fn(&[&[u8]], &[u8]) -> bool = match ty.kind {
                kind::STRUCT => |roots, name| roots.binary_search(&name).is_ok(),
                kind::TYPEDEF => |_, name| name.starts_with(TRACEPOINT.as_bytes()),
                kind::ENUM => |_, name| name == PID_TYPE.as_bytes(),
                _ => continue,
            };
            let name = btf.name(&ty);
            if is_wanted(&roots, name) {
                by_name.entry(name).or_insert(ty);
            }
        }
        Self { btf, by_name }
    }

    fn named(&self, name: &str) -> Result<Type<'a>, KernelError> {
        let found = self.by_name.get(name.as_bytes()).copied();
        found.ok_or_else(|| KernelError::layout(&format!("this kernel has no `{name}`")))
    }

    /// Where a field is in the structure that the way to it begins with, in bytes; in bits where the way ends in `:`.
    /// `size`: its size, 0 for any.
    fn place(&self, way: &'static str, size: u32) -> Result<u32, KernelError> {
        let mut steps = way.split('.');
        let mut record = self.named(steps.next().unwrap_or_default());
        let (mut offset, mut ty) = (0_u32, 0);
        for step in steps {
            let missing = || KernelError::layout(&format!("this kernel has no field `{step}` as in `{way}`"));
            let (step, in_bits) = step.strip_suffix(':').map_or((step, false), |step| (step, true));
            let (names, index) =
                step.strip_suffix(']').and_then(|step| step.split_once('[')).unwrap_or((step, ""));
            let of = record?;
            // Real kernels nest anonymous structures four deep; the bound makes the search total.
            let found = names.split('|').find_map(|name| self.find(of, name.as_bytes(), 0, 8));
            let (bits, of_type) = found.ok_or_else(missing)?;
            if in_bits {
                return offset.checked_mul(8).and_then(|offset| offset.checked_add(bits)).ok_or_else(missing);
            }
            let at = (bits % 8 == 0).then_some(bits / 8).ok_or_else(missing)?;
            ty = of_type;
            let mut within = 0;
            if !index.is_empty() {
                let index = index.parse().or_else(|_| self.constant(index))?;
                // A flexible array has no number of elements.
                (ty, _) = self.btf.resolve(ty).and_then(|ty| ty.array()).ok_or_else(missing)?;
                within = self.btf.size(ty).and_then(|size| size.checked_mul(index)).ok_or_else(missing)?;
            }
            offset = [at, within].into_iter().try_fold(offset, u32::checked_add).ok_or_else(missing)?;
            record = self.btf.resolve(ty).ok_or_else(missing);
        }
        let found = self.btf.size(ty).unwrap_or(0);
        if size == 0 || found == size {
            return Ok(offset);
        }
        Err(KernelError::layout(&format!("this kernel's `{way}` has {found} bytes, not {size}")))
    }

    /// Offset in bits and type of a field, anonymous structures and unions included.
    fn find(&self, record: Type<'a>, field: &[u8], base: u32, depth: u32) -> Option<(u32, TypeId)> {
        let depth = depth.checked_sub(1)?;
        for member in record.members() {
            let name = self.btf.string(member.name);
            let bits = base.checked_add(member.bits)?;
            if name == field {
                return Some((bits, member.ty));
            }
            if name.is_empty()
                && let Some(inner) = self.btf.resolve(member.ty).filter(Type::is_record)
                && let Some(found) = self.find(inner, field, bits, depth)
            {
                return Some(found);
            }
        }
        None
    }

    fn constant(&self, name: &str) -> Result<u32, KernelError> {
        let mut constants = self.named(PID_TYPE)?.constants();
        let found = constants.find(|&(at, _)| self.btf.string(at) == name.as_bytes());
        found
            .map(|(_, value)| value)
            .ok_or_else(|| KernelError::layout(&format!("this kernel has no `{name}`")))
    }

    /// The types of a tracepoint's arguments, `TP_PROTO`: at least so many. In BTF it is a pointer to a function whose first
    /// parameter is the tracepoint's own data.
    fn arguments(&self, name: &str, wanted: usize) -> Result<Vec<TypeId>, KernelError> {
        let pointer = self.btf.resolve(self.named(&format!("{TRACEPOINT}{name}"))?.size_or_type);
        let prototype =
            pointer.filter(|ty| ty.kind == kind::POINTER).and_then(|ty| self.btf.resolve(ty.size_or_type));
        let arguments: Vec<TypeId> = prototype.into_iter().flat_map(Type::parameters).skip(1).collect();
        let found = arguments.len();
        if found >= wanted {
            return Ok(arguments);
        }
        Err(KernelError::layout(&format!(
            "this kernel's tracepoint `{name}` has {found} arguments, not {wanted}"
        )))
    }
}

#[cfg(test)]
mod tests;

//! Where the running kernel keeps what the eBPF programs read: [`Offsets`] out of BTF. Pure and total.

use std::collections::HashMap;

use monitor_common::{CallOffsets, EndOffsets, Offsets, SignalOffsets, TaskOffsets};
use thiserror::Error;

use super::btf::{Btf, BtfError, Kind, Type, TypeId};

/// Why this kernel cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The bytes are not BTF.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// A type is missing.
    #[error("this kernel has no `{0}`")]
    NoType(&'static str),
    /// A field is missing.
    #[error("this kernel's `struct {0}` has no field `{1}`")]
    NoField(&'static str, &'static str),
    /// A field is not what the programs read.
    #[error("this kernel's `{record}::{field}` has {found} bytes, not {wanted}")]
    FieldSize {
        /// The structure.
        record: &'static str,
        /// The field.
        field: &'static str,
        /// The size in BTF.
        found: u32,
        /// The size the programs read.
        wanted: u32,
    },
    /// A tracepoint has too few arguments.
    #[error("this kernel's tracepoint `{name}` has {found} arguments, not {wanted}")]
    Tracepoint {
        /// The tracepoint.
        name: &'static str,
        /// Arguments in BTF.
        found: usize,
        /// Arguments the programs read.
        wanted: usize,
    },
}

const POINTER: u32 = 8;

/// The offsets of the kernel whose BTF these bytes are.
pub fn offsets(btf: &[u8]) -> Result<Offsets, LayoutError> {
    read(btf).map(|(offsets, _)| offsets)
}

/// Likewise; and those that a kernel may lack.
pub fn read(btf: &[u8]) -> Result<(Offsets, MoreOffsets), LayoutError> {
    let kernel = Names::new(Btf::parse(btf)?);
    let more = MoreOffsets {
        ends: ends::offsets(&kernel),
        tasks: tasks::offsets(&kernel),
        signals: signals::offsets(&kernel),
        calls: calls::offsets(&kernel),
    };
    Ok((of_events(&kernel)?, more))
}

/// What a kernel may lack: then what reads it is left out.
#[derive(Debug)]
pub struct MoreOffsets {
    /// For the pass over all descriptors.
    pub ends: Result<EndOffsets, LayoutError>,
    /// For that over all tasks.
    pub tasks: Result<TaskOffsets, LayoutError>,
    /// For the hook on signals.
    pub signals: Result<SignalOffsets, LayoutError>,
    /// For the hook on connections.
    pub calls: Result<CallOffsets, LayoutError>,
}

fn of_events(kernel: &Names<'_>) -> Result<Offsets, LayoutError> {
    let field = |record, field, size| kernel.offset(record, field, size);

    kernel.tracepoint("sched_process_fork", "btf_trace_sched_process_fork", 2)?;
    kernel.tracepoint("sched_process_exec", "btf_trace_sched_process_exec", 3)?;
    let exit = kernel.tracepoint("sched_process_exit", "btf_trace_sched_process_exit", 1)?;
    // `bool group_dead`: one byte. Anything else in its place is not it.
    let group_dead = exit.get(1).is_some_and(|&ty| kernel.btf.size(ty) == Some(1));

    Ok(Offsets {
        task_tgid: field("task_struct", "tgid", 4)?,
        task_group_leader: field("task_struct", "group_leader", POINTER)?,
        task_real_parent: field("task_struct", "real_parent", POINTER)?,
        task_start_boottime: field("task_struct", "start_boottime", 8)?,
        task_exit_code: field("task_struct", "exit_code", 4)?,
        task_signal: field("task_struct", "signal", POINTER)?,
        task_real_cred: field("task_struct", "real_cred", POINTER)?,
        task_mm: field("task_struct", "mm", POINTER)?,
        task_files: field("task_struct", "files", POINTER)?,
        task_comm: kernel.element("task_struct", "comm", 0)?,
        signal_live: field("signal_struct", "live", 4)?,
        signal_flags: field("signal_struct", "flags", 4)?,
        signal_group_exit_code: field("signal_struct", "group_exit_code", 4)?,
        signal_sid: kernel.element("signal_struct", "pids", kernel.constant("pid_type", "PIDTYPE_SID")?)?,
        pid_nr: kernel.element("pid", "numbers", 0)? + field("upid", "nr", 4)?,
        cred_uid: field("cred", "uid", 4)?,
        mm_arg_start: field("mm_struct", "arg_start", 8)?,
        mm_arg_end: field("mm_struct", "arg_end", 8)?,
        bprm_interp: field("linux_binprm", "interp", POINTER)?,
        files_fdt: field("files_struct", "fdt", POINTER)?,
        fdtable_fd: field("fdtable", "fd", POINTER)?,
        file_inode: field("file", "f_inode", POINTER)?,
        inode_mode: field("inode", "i_mode", 2)?,
        inode_ino: field("inode", "i_ino", 8)?,
        inode_rdev: field("inode", "i_rdev", 4)?,
        exit_has_group_dead: u32::from(group_dead),
    })
}

/// The types that are looked for, by what they are.
const STRUCTS: [&str; 11] = [
    "task_struct",
    "signal_struct",
    "pid",
    "upid",
    "cred",
    "mm_struct",
    "linux_binprm",
    "files_struct",
    "fdtable",
    "file",
    "inode",
];
const TYPEDEFS: [&str; 5] = [
    "btf_trace_sched_process_fork",
    "btf_trace_sched_process_exec",
    "btf_trace_sched_process_exit",
    signals::TYPEDEF,
    calls::TYPEDEF,
];
const ENUMS: [&str; 1] = ["pid_type"];

struct Names<'a> {
    btf: Btf<'a>,
    by_name: HashMap<&'static str, Type<'a>>,
}

impl<'a> Names<'a> {
    fn new(btf: Btf<'a>) -> Self {
        let mut by_name = HashMap::new();
        let structs =
            [&STRUCTS[..], &ends::STRUCTS, &tasks::STRUCTS, &signals::STRUCTS, &calls::STRUCTS].concat();
        for (_, ty) in btf.types() {
            let wanted: &[&'static str] = match ty.kind {
                Kind::Struct => &structs,
                Kind::Typedef => &TYPEDEFS,
                Kind::Enum => &ENUMS,
                _ => continue,
            };
            let found = btf.name(&ty);
            if let Some(name) = wanted.iter().find(|name| name.as_bytes() == found) {
                by_name.entry(*name).or_insert(ty);
            }
        }
        Self { btf, by_name }
    }

    fn named(&self, name: &'static str) -> Result<Type<'a>, LayoutError> {
        self.by_name.get(name).copied().ok_or(LayoutError::NoType(name))
    }

    /// Offset in bytes and type of a field, anonymous structures and unions included.
    fn field(&self, record: &'static str, field: &'static str) -> Result<(u32, TypeId), LayoutError> {
        // Real kernels nest anonymous structures four deep; the bound makes the search total.
        self.find(self.named(record)?, field.as_bytes(), 0, 8).ok_or(LayoutError::NoField(record, field))
    }

    fn find(&self, record: Type<'a>, field: &[u8], base: u32, depth: u32) -> Option<(u32, TypeId)> {
        let depth = depth.checked_sub(1)?;
        for member in record.members() {
            let name = self.btf.string(member.name);
            let bits = base.checked_add(member.bits)?;
            if name == field {
                return (bits % 8 == 0).then_some((bits / 8, member.ty));
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

    fn offset(&self, record: &'static str, field: &'static str, wanted: u32) -> Result<u32, LayoutError> {
        let (offset, ty) = self.field(record, field)?;
        let found = self.btf.size(ty).unwrap_or(0);
        if found == wanted {
            Ok(offset)
        } else {
            Err(LayoutError::FieldSize { record, field, found, wanted })
        }
    }

    /// The offset of an element of an array. A flexible array has no number of elements.
    fn element(&self, record: &'static str, field: &'static str, index: u32) -> Result<u32, LayoutError> {
        let missing = LayoutError::NoField(record, field);
        let (offset, ty) = self.field(record, field)?;
        let (element, _) = self.btf.resolve(ty).and_then(|ty| ty.array()).ok_or(missing.clone())?;
        let size = self.btf.size(element).ok_or(missing.clone())?;
        size.checked_mul(index).and_then(|at| at.checked_add(offset)).ok_or(missing)
    }

    /// The offset of the handler of signal 1.
    fn first_handler(&self) -> Result<u32, LayoutError> {
        let action = self.element("sighand_struct", "action", 0)?;
        let (sa, _) = self.field("k_sigaction", "sa")?;
        Ok(action + sa + self.offset("sigaction", "sa_handler", POINTER)?)
    }

    fn constant(&self, enumeration: &'static str, name: &'static str) -> Result<u32, LayoutError> {
        let ty = self.named(enumeration)?;
        let found = ty.constants().find(|&(at, _)| self.btf.string(at) == name.as_bytes());
        found.map(|(_, value)| value).ok_or(LayoutError::NoType(name))
    }

    /// The types of a tracepoint's arguments, `TP_PROTO`. In BTF it is a pointer to a function whose first parameter is
    /// the tracepoint's own data.
    fn tracepoint(
        &self,
        name: &'static str,
        typedef: &'static str,
        wanted: usize,
    ) -> Result<Vec<TypeId>, LayoutError> {
        let pointer = self.btf.resolve(self.named(typedef)?.size_or_type);
        let prototype =
            pointer.filter(|ty| ty.kind == Kind::Pointer).and_then(|ty| self.btf.resolve(ty.size_or_type));
        let arguments: Vec<TypeId> =
            prototype.iter().flat_map(|ty| ty.parameters().skip(1).collect::<Vec<_>>()).collect();
        let found = arguments.len();
        if found >= wanted { Ok(arguments) } else { Err(LayoutError::Tracepoint { name, found, wanted }) }
    }
}

mod calls;
mod ends;
mod signals;
mod tasks;

#[cfg(test)]
mod cut;
#[cfg(test)]
mod tests;

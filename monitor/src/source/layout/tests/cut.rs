//! Cuts a small BTF out of a kernel's: the types and fields that [`super::offsets`] looks for, at their offsets, and
//! nothing else. Pointers in structures point to `void`.

use std::collections::{HashMap, HashSet};

use monitor_common::WAYS;

use crate::source::btf::{Btf, Type, TypeId, kind, pack};

/// The structures and fields that ways lead through, whatever structure a field is in.
fn steps() -> (HashSet<&'static [u8]>, HashSet<&'static [u8]>) {
    let mut ways = WAYS.iter().map(|way| way.split('.'));
    let mut roots = HashSet::new();
    let mut fields = HashSet::new();
    for way in ways.by_ref() {
        let mut steps = way.map(|step| step.split('[').next().unwrap());
        roots.insert(steps.next().unwrap().as_bytes());
        fields.extend(steps.flat_map(|step| step.split('|')).map(str::as_bytes));
    }
    (roots, fields)
}

/// The tracepoints whose arguments are read.
const TYPEDEFS: [&[u8]; 5] = [
    b"btf_trace_sched_process_fork",
    b"btf_trace_sched_process_exec",
    b"btf_trace_sched_process_exit",
    b"btf_trace_signal_generate",
    b"btf_trace_inet_sock_set_state",
];

/// The small BTF.
pub fn cut(full: &[u8]) -> Vec<u8> {
    let btf = Btf::parse(full).unwrap();
    let (roots, fields) = steps();
    let mut cutter = Cutter { btf: &btf, fields, types: Vec::new(), strings: vec![0], done: HashMap::new() };
    for (id, ty) in btf.types() {
        let name = btf.name(&ty);
        let wanted = match ty.kind {
            kind::STRUCT => roots.contains(name),
            kind::TYPEDEF => TYPEDEFS.contains(&name),
            kind::ENUM => name == b"pid_type",
            _ => false,
        };
        if wanted {
            cutter.keep(id);
        }
    }
    cutter.finish()
}

struct Cutter<'a> {
    btf: &'a Btf<'a>,
    fields: HashSet<&'static [u8]>,
    types: Vec<Vec<u32>>,
    strings: Vec<u8>,
    done: HashMap<TypeId, u32>,
}

impl Cutter<'_> {
    fn string(&mut self, text: &[u8]) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = u32::try_from(self.strings.len()).unwrap();
        self.strings.extend_from_slice(text);
        self.strings.push(0);
        at
    }

    /// Keeps a type with what it is made of; its new number.
    fn keep(&mut self, id: TypeId) -> u32 {
        if id == 0 {
            return 0;
        }
        if let Some(&new) = self.done.get(&id) {
            return new;
        }
        let ty = self.btf.get(id).unwrap();
        self.types.push(Vec::new());
        let new = u32::try_from(self.types.len()).unwrap();
        self.done.insert(id, new);
        let words = self.words(&ty);
        self.types[new as usize - 1] = words;
        new
    }

    fn words(&mut self, ty: &Type<'_>) -> Vec<u32> {
        let btf = self.btf;
        let name = self.string(btf.name(ty));
        let head = |kind: u32, count: usize, size_or_type: u32| {
            vec![name, kind << 24 | u32::try_from(count).unwrap(), size_or_type]
        };
        match ty.kind {
            kind::INT => [head(1, 0, ty.size_or_type), vec![8 * ty.size_or_type]].concat(),
            kind::POINTER => {
                let prototype = btf.get(ty.size_or_type).filter(|t| t.kind == kind::PROTOTYPE);
                let to = if prototype.is_some() { self.keep(ty.size_or_type) } else { 0 };
                head(2, 0, to)
            }
            kind::ARRAY => {
                let (element, count) = ty.array().unwrap();
                let element = self.keep(element);
                [head(3, 0, 0), vec![element, element, count]].concat()
            }
            kind::STRUCT | kind::UNION => {
                let mut members = Vec::new();
                for member in ty.members() {
                    let name = btf.string(member.name);
                    let record = btf.resolve(member.ty).is_some_and(|t| t.is_record());
                    let wanted = self.fields.contains(name) || (name.is_empty() && record);
                    if wanted {
                        members.push([self.string(name), self.keep(member.ty), member.bits]);
                    }
                }
                [head(ty.kind, members.len(), ty.size_or_type), members.concat()].concat()
            }
            kind::ENUM => {
                let constants: Vec<_> =
                    ty.constants().map(|(n, v)| [self.string(btf.string(n)), v]).collect();
                [head(6, constants.len(), ty.size_or_type), constants.concat()].concat()
            }
            _ if ty.is_alias() => {
                let to = self.keep(ty.size_or_type);
                head(8, 0, to)
            }
            kind::PROTOTYPE => {
                let parameters: Vec<_> = ty.parameters().map(|p| [0, self.keep(p)]).collect();
                [head(13, parameters.len(), 0), parameters.concat()].concat()
            }
            other => panic!("a type of kind {other} among the fields"),
        }
    }

    fn finish(self) -> Vec<u8> {
        let types: Vec<u8> = self.types.concat().iter().flat_map(|w| w.to_ne_bytes()).collect();
        pack(&types, &self.strings)
    }
}

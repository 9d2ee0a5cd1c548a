//! Cuts a small BTF out of a kernel's: the types and fields that [`super::offsets`] looks for, at their offsets, and
//! nothing else. Pointers in structures point to `void`.

use std::collections::HashMap;

use super::{ENUMS, STRUCTS, TYPEDEFS, ends};
use crate::source::btf::{Btf, Kind, Type, TypeId};

/// The fields that are kept, whatever structure they are in.
const FIELDS: [&str; 42] = [
    "tgid",
    "group_leader",
    "real_parent",
    "start_boottime",
    "exit_code",
    "signal",
    "real_cred",
    "mm",
    "files",
    "comm",
    "live",
    "flags",
    "group_exit_code",
    "pids",
    "numbers",
    "nr",
    "uid",
    "arg_start",
    "arg_end",
    "interp",
    "fdt",
    "fd",
    "f_inode",
    "i_mode",
    "i_ino",
    "i_rdev",
    "f_mode",
    "private_data",
    "f_count",
    "f_ref",
    "i_sb",
    "i_pipe",
    "s_dev",
    "readers",
    "writers",
    "sk",
    "__sk_common",
    "skc_family",
    "sk_socket",
    "peer",
    "socket",
    "vfs_inode",
];

/// The small BTF.
pub fn cut(full: &[u8]) -> Vec<u8> {
    let btf = Btf::parse(full).unwrap();
    let mut cutter = Cutter { btf: &btf, types: Vec::new(), strings: vec![0], done: HashMap::new() };
    for (id, ty) in btf.types() {
        let name = btf.name(&ty);
        let listed = |names: &[&str]| names.iter().any(|n| n.as_bytes() == name);
        let wanted = match ty.kind {
            Kind::Struct => listed(&STRUCTS) || listed(&ends::STRUCTS),
            Kind::Typedef => listed(&TYPEDEFS),
            Kind::Enum => listed(&ENUMS),
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
            Kind::Int => [head(1, 0, ty.size_or_type), vec![8 * ty.size_or_type]].concat(),
            Kind::Pointer => {
                let prototype = btf.get(ty.size_or_type).filter(|t| t.kind == Kind::Prototype);
                let to = if prototype.is_some() { self.keep(ty.size_or_type) } else { 0 };
                head(2, 0, to)
            }
            Kind::Array => {
                let (element, count) = ty.array().unwrap();
                let element = self.keep(element);
                [head(3, 0, 0), vec![element, element, count]].concat()
            }
            Kind::Struct | Kind::Union => {
                let mut members = Vec::new();
                for member in ty.members() {
                    let name = btf.string(member.name);
                    let record = btf.resolve(member.ty).is_some_and(|t| t.is_record());
                    let wanted = FIELDS.iter().any(|f| f.as_bytes() == name) || (name.is_empty() && record);
                    if wanted {
                        members.push([self.string(name), self.keep(member.ty), member.bits]);
                    }
                }
                let kind = if ty.kind == Kind::Struct { 4 } else { 5 };
                [head(kind, members.len(), ty.size_or_type), members.concat()].concat()
            }
            Kind::Enum => {
                let constants: Vec<_> =
                    ty.constants().map(|(n, v)| [self.string(btf.string(n)), v]).collect();
                [head(6, constants.len(), ty.size_or_type), constants.concat()].concat()
            }
            Kind::Typedef | Kind::Alias => {
                let to = self.keep(ty.size_or_type);
                head(8, 0, to)
            }
            Kind::Prototype => {
                let parameters: Vec<_> = ty.parameters().map(|p| [0, self.keep(p)]).collect();
                [head(13, parameters.len(), 0), parameters.concat()].concat()
            }
            other => panic!("a {other:?} among the fields"),
        }
    }

    fn finish(self) -> Vec<u8> {
        let types: Vec<u8> = self.types.concat().iter().flat_map(|w| w.to_ne_bytes()).collect();
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
        let header = [24, 0, len(&types), len(&types), len(&self.strings)];
        let mut out = vec![0x9f, 0xeb, 1, 0];
        out.extend(header.iter().flat_map(|w: &u32| w.to_ne_bytes()));
        out.extend(types);
        out.extend(self.strings);
        out
    }
}

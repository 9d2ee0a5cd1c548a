//! A reader of BTF, the kernel's own type information (Documentation/bpf/btf.rst), as far as field offsets
//! need it. Pure and total: any bytes give an answer or an error.

use std::ffi::CStr;

/// `BTF_KIND_*` of include/uapi/linux/btf.h, as far as they matter here.
pub mod kind {
    pub const INT: u32 = 1;
    pub const POINTER: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const FORWARD: u32 = 7;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNCTION: u32 = 12;
    pub const PROTOTYPE: u32 = 13;
    pub const FLOAT: u32 = 16;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

const MAGIC: u16 = 0xeb9f;

/// The number of a type; 0 is `void`.
pub type TypeId = u32;

/// A type: a view into the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Type<'a> {
    pub kind: u32,
    /// Size in bytes, or the type referred to.
    pub size_or_type: u32,
    name: u32,
    packed_offsets: bool,
    extra: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where its name is.
    pub name: u32,
    pub ty: TypeId,
    pub bits: u32,
}

#[derive(Debug)]
pub struct Btf<'a> {
    /// Where each type begins in `types`; entry 0 is the type 1.
    starts: Vec<u32>,
    types: &'a [u8],
    strings: &'a [u8],
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*four))
}

fn section(bytes: &[u8], header_len: u32, field: usize) -> Option<&[u8]> {
    let start = header_len.checked_add(u32_at(bytes, field)?)? as usize;
    let len = u32_at(bytes, field + 4)? as usize;
    bytes.get(start..start.checked_add(len)?)
}

impl<'a> Btf<'a> {
    /// Finds where each type begins. The error says what is wrong with the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        const TRUNCATED: &str = "ends in the middle of something";
        if bytes.first_chunk().copied().map(u16::from_ne_bytes) != Some(MAGIC) {
            return Err("is no BTF of this machine's byte order".to_owned());
        }
        let header_len = u32_at(bytes, 4).ok_or(TRUNCATED)?;
        let types = section(bytes, header_len, 8).ok_or(TRUNCATED)?;
        let strings = section(bytes, header_len, 16).ok_or(TRUNCATED)?;
        // A type takes 16 to 40 bytes on the whole.
        let mut starts = Vec::with_capacity(types.len() / 24);
        let mut at = 0;
        while at < types.len() {
            starts.push(u32::try_from(at).map_err(|_| TRUNCATED)?);
            let info = u32_at(types, at + 4).ok_or(TRUNCATED)?;
            let extra =
                extra_len(info).ok_or_else(|| format!("has a type of the unknown kind {}", kind_of(info)))?;
            at += 12 + extra;
        }
        if at > types.len() { Err(TRUNCATED.to_owned()) } else { Ok(Self { starts, types, strings }) }
    }

    pub fn get(&self, id: TypeId) -> Option<Type<'a>> {
        self.at(*self.starts.get(id.checked_sub(1)? as usize)?)
    }

    fn at(&self, start: u32) -> Option<Type<'a>> {
        let bytes = self.types.get(start as usize..)?;
        let info = u32_at(bytes, 4)?;
        Some(Type {
            kind: kind_of(info),
            size_or_type: u32_at(bytes, 8)?,
            name: u32_at(bytes, 0)?,
            packed_offsets: info >> 31 == 1,
            extra: bytes.get(12..12 + extra_len(info)?)?,
        })
    }

    /// All types in their order, from number 1.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, Type<'a>)> + '_ {
        (1..).zip(&self.starts).filter_map(|(id, &start)| Some((id, self.at(start)?)))
    }

    pub fn name(&self, ty: &Type<'_>) -> &'a [u8] {
        self.string(ty.name)
    }

    /// A string; empty if there is none.
    pub fn string(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        CStr::from_bytes_until_nul(rest).map_or(rest, CStr::to_bytes)
    }

    /// Nothing but these functions, under the same numbers: all that aya looks for. It takes 10 ms and 15 MB to read the whole.
    pub fn only_functions(&self, wanted: &[&str]) -> Vec<u8> {
        let words = |words: [u32; 3]| words.map(u32::to_ne_bytes).concat();
        let mut types = words([0, kind::FORWARD << 24, 0]).repeat(self.starts.len());
        let mut strings = vec![0];
        for (place, (_, ty)) in types.chunks_exact_mut(12).zip(self.types()) {
            if ty.kind == kind::FUNCTION && wanted.iter().any(|wanted| wanted.as_bytes() == self.name(&ty)) {
                let name = u32::try_from(strings.len()).unwrap_or(0);
                place.copy_from_slice(&words([name, kind::FUNCTION << 24, 0]));
                strings.extend([self.name(&ty), b"\0"].concat());
            }
        }
        pack(&types, &strings)
    }

    /// What a type is behind its typedefs, qualifiers and tags. Total: a cycle ends in `None`.
    pub fn resolve(&self, mut id: TypeId) -> Option<Type<'a>> {
        for _ in 0..32 {
            let ty = self.get(id)?;
            if !ty.is_alias() {
                return Some(ty);
            }
            id = ty.size_or_type;
        }
        None
    }

    /// The size of a type in bytes, as far as fields need it.
    pub fn size(&self, id: TypeId) -> Option<u32> {
        let ty = self.resolve(id)?;
        match ty.kind {
            kind::POINTER => u32::try_from(size_of::<*const u8>()).ok(),
            kind::INT | kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 | kind::FLOAT => {
                Some(ty.size_or_type)
            }
            _ => None,
        }
    }
}

impl<'a> Type<'a> {
    /// Whether it is another name for a type, or that type with a qualifier or a tag.
    pub const fn is_alias(&self) -> bool {
        matches!(self.kind, kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG)
    }

    pub const fn is_record(&self) -> bool {
        matches!(self.kind, kind::STRUCT | kind::UNION)
    }

    pub fn members(self) -> impl Iterator<Item = Member> + 'a {
        let mask = if self.packed_offsets { 0x00ff_ffff } else { u32::MAX };
        self.entries(self.is_record(), 12).filter_map(move |m| {
            Some(Member { name: u32_at(m, 0)?, ty: u32_at(m, 4)?, bits: u32_at(m, 8)? & mask })
        })
    }

    /// Name and value of each constant of an enumeration.
    pub fn constants(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.entries(self.kind == kind::ENUM, 8).filter_map(|c| Some((u32_at(c, 0)?, u32_at(c, 4)?)))
    }

    pub fn parameters(self) -> impl Iterator<Item = TypeId> + 'a {
        self.entries(self.kind == kind::PROTOTYPE, 8).filter_map(|p| u32_at(p, 4))
    }

    /// Element type and number of elements of an array.
    pub fn array(&self) -> Option<(TypeId, u32)> {
        (self.kind == kind::ARRAY).then_some(())?;
        Some((u32_at(self.extra, 0)?, u32_at(self.extra, 8)?))
    }

    fn entries(self, has_some: bool, width: usize) -> impl Iterator<Item = &'a [u8]> {
        self.extra.chunks_exact(width).filter(move |_| has_some)
    }
}

pub fn pack(types: &[u8], strings: &[u8]) -> Vec<u8> {
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let header = [24, 0, len(types), len(types), len(strings)];
    let mut packed = [MAGIC.to_ne_bytes(), [1, 0]].concat();
    packed.extend(header.iter().flat_map(|word: &u32| word.to_ne_bytes()));
    [&packed, types, strings].concat()
}

const fn kind_of(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// How many bytes follow the twelve that every type has. None: the kind is unknown, and so is where the next type begins.
const fn extra_len(info: u32) -> Option<usize> {
    let count = (info & 0xffff) as usize;
    match kind_of(info) {
        // Pointers, forward declarations, typedefs, qualifiers, functions, floats, tags.
        2 | 7..=12 | 16 | 18 => Some(0),
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => Some(4),
        kind::ARRAY => Some(12),
        kind::STRUCT | kind::UNION | 15 | kind::ENUM64 => Some(12 * count),
        kind::ENUM | kind::PROTOTYPE => Some(8 * count),
        _ => None,
    }
}

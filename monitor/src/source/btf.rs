//! A reader of BTF, the kernel's own type information (Documentation/bpf/btf.rst), as far as field offsets
//! need it. Pure and total: any bytes give an answer or an error.

use thiserror::Error;

/// Why the bytes could not be read as BTF.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BtfError {
    /// The magic number is not there.
    #[error("these bytes are not BTF of this machine's byte order")]
    NotBtf,
    /// A section or a type reaches past the end.
    #[error("the BTF ends in the middle of something")]
    Truncated,
    /// A kind this reader does not know: its size is unknown, and so is where the next type begins.
    #[error("the BTF has a type of the unknown kind {0}")]
    UnknownKind(u32),
}

const MAGIC: u16 = 0xeb9f;

/// A kind of type, `BTF_KIND_*` in include/uapi/linux/btf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer.
    Int,
    /// A pointer.
    Pointer,
    /// An array.
    Array,
    /// A structure.
    Struct,
    /// A union.
    Union,
    /// An enumeration of 32-bit values.
    Enum,
    /// A forward declaration.
    Forward,
    /// Another name, or `const`, `volatile`, `restrict`, a tag: says nothing about size and fields.
    Alias,
    /// A typedef.
    Typedef,
    /// A function.
    Function,
    /// A function's prototype.
    Prototype,
    /// An enumeration of 64-bit values.
    Enum64,
    /// A floating point number.
    Float,
    /// A variable, a section, a tag of a declaration.
    Other,
}

/// The number of a type; 0 is `void`.
pub type TypeId = u32;

/// A type: a view into the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Type<'a> {
    /// What kind.
    pub kind: Kind,
    /// Size in bytes, or the type referred to.
    pub size_or_type: u32,
    name: u32,
    count: u32,
    packed_offsets: bool,
    extra: &'a [u8],
}

/// A field of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where its name is.
    pub name: u32,
    /// Its type.
    pub ty: TypeId,
    /// Its offset in bits.
    pub bits: u32,
}

/// Parsed BTF.
#[derive(Debug)]
pub struct Btf<'a> {
    /// Where each type begins in `types`; entry 0 is the type 1.
    starts: Vec<u32>,
    types: &'a [u8],
    strings: &'a [u8],
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

fn section(bytes: &[u8], header_len: u32, field: usize) -> Option<&[u8]> {
    let start = header_len.checked_add(u32_at(bytes, field)?)? as usize;
    let len = u32_at(bytes, field + 4)? as usize;
    bytes.get(start..start.checked_add(len)?)
}

impl<'a> Btf<'a> {
    /// Finds where each type begins.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        let magic = bytes.get(..2).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes);
        if magic != Some(MAGIC) {
            return Err(BtfError::NotBtf);
        }
        let header_len = u32_at(bytes, 4).ok_or(BtfError::Truncated)?;
        let types = section(bytes, header_len, 8).ok_or(BtfError::Truncated)?;
        let strings = section(bytes, header_len, 16).ok_or(BtfError::Truncated)?;
        // A type takes 16 to 40 bytes on the whole.
        let mut starts = Vec::with_capacity(types.len() / 24);
        let mut at = 0;
        while at < types.len() {
            starts.push(u32::try_from(at).map_err(|_| BtfError::Truncated)?);
            let (ty, len) = read_type(types, at)?;
            let extra = ty.extra.len();
            debug_assert_eq!(len, 12 + extra);
            at += len;
        }
        Ok(Self { starts, types, strings })
    }

    /// A type by its number.
    pub fn get(&self, id: TypeId) -> Option<Type<'a>> {
        let start = *self.starts.get(id.checked_sub(1)? as usize)?;
        read_type(self.types, start as usize).ok().map(|(ty, _)| ty)
    }

    /// All types in their order, from number 1.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, Type<'a>)> + '_ {
        (1..).zip(&self.starts).filter_map(|(id, &at)| Some((id, read_type(self.types, at as usize).ok()?.0)))
    }

    /// The name of a type.
    pub fn name(&self, ty: &Type<'_>) -> &'a [u8] {
        self.string(ty.name)
    }

    /// A string; empty if there is none.
    pub fn string(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        rest.split(|&b| b == 0).next().unwrap_or_default()
    }

    /// What a type is behind its typedefs, qualifiers and tags. Total: a cycle ends in `None`.
    pub fn resolve(&self, mut id: TypeId) -> Option<Type<'a>> {
        for _ in 0..32 {
            let ty = self.get(id)?;
            match ty.kind {
                Kind::Typedef | Kind::Alias => id = ty.size_or_type,
                _ => return Some(ty),
            }
        }
        None
    }

    /// The size of a type in bytes, as far as fields need it.
    pub fn size(&self, id: TypeId) -> Option<u32> {
        let ty = self.resolve(id)?;
        match ty.kind {
            Kind::Pointer => u32::try_from(size_of::<*const u8>()).ok(),
            Kind::Int | Kind::Struct | Kind::Union | Kind::Enum | Kind::Enum64 | Kind::Float => {
                Some(ty.size_or_type)
            }
            _ => None,
        }
    }
}

impl Type<'_> {
    /// The fields of a structure or union.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        let record = matches!(self.kind, Kind::Struct | Kind::Union);
        let packed = self.packed_offsets;
        self.extra.chunks_exact(12).filter(move |_| record).filter_map(move |m| {
            let offset = u32_at(m, 8)?;
            let bits = if packed { offset & 0x00ff_ffff } else { offset };
            Some(Member { name: u32_at(m, 0)?, ty: u32_at(m, 4)?, bits })
        })
    }

    /// Name and value of each constant of an enumeration.
    pub fn constants(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let width = if self.kind == Kind::Enum64 { 12 } else { 8 };
        let listed = matches!(self.kind, Kind::Enum | Kind::Enum64);
        self.extra
            .chunks_exact(width)
            .filter(move |_| listed)
            .filter_map(|c| Some((u32_at(c, 0)?, u32_at(c, 4)?)))
    }

    /// The types of a prototype's parameters.
    pub fn parameters(&self) -> impl Iterator<Item = TypeId> + '_ {
        let listed = self.kind == Kind::Prototype;
        self.extra.chunks_exact(8).filter(move |_| listed).filter_map(|p| u32_at(p, 4))
    }

    /// Element type and number of elements of an array.
    pub fn array(&self) -> Option<(TypeId, u32)> {
        (self.kind == Kind::Array).then_some(())?;
        Some((u32_at(self.extra, 0)?, u32_at(self.extra, 8)?))
    }

    /// Whether it has fields.
    pub const fn is_record(&self) -> bool {
        matches!(self.kind, Kind::Struct | Kind::Union)
    }

    /// How many fields, constants or parameters it has.
    pub const fn count(&self) -> u32 {
        self.count
    }
}

/// The type at `at` and its length.
fn read_type(types: &[u8], at: usize) -> Result<(Type<'_>, usize), BtfError> {
    let head = types.get(at..at + 12).ok_or(BtfError::Truncated)?;
    let field = |n| u32_at(head, n).ok_or(BtfError::Truncated);
    let info = field(4)?;
    let count = info & 0xffff;
    let n = count as usize;
    let (kind, extra) = match info >> 24 & 0x1f {
        1 => (Kind::Int, 4),
        2 => (Kind::Pointer, 0),
        3 => (Kind::Array, 12),
        4 => (Kind::Struct, 12 * n),
        5 => (Kind::Union, 12 * n),
        6 => (Kind::Enum, 8 * n),
        7 => (Kind::Forward, 0),
        8 => (Kind::Typedef, 0),
        9 | 10 | 11 | 18 => (Kind::Alias, 0),
        12 => (Kind::Function, 0),
        13 => (Kind::Prototype, 8 * n),
        14 | 17 => (Kind::Other, 4),
        15 => (Kind::Other, 12 * n),
        16 => (Kind::Float, 0),
        19 => (Kind::Enum64, 12 * n),
        unknown => return Err(BtfError::UnknownKind(unknown)),
    };
    let extra = types.get(at + 12..at + 12 + extra).ok_or(BtfError::Truncated)?;
    let ty = Type {
        kind,
        size_or_type: field(8)?,
        name: field(0)?,
        count,
        packed_offsets: info >> 31 == 1,
        extra,
    };
    Ok((ty, 12 + extra.len()))
}

//! The filter before MEMBERS: whether a thread group can be a member, without a look-up in the hash map.
//!
//! It is a counting filter with one hash function, the low bits of the number: numbers are given out in sequence, so
//! that the processes of a busy host share cache lines. Each slot counts the entries of MEMBERS whose key falls into
//! it. Two keys in the same slot cost the second one a look-up and nothing else.
//!
//! Invariant: a slot counts at least the entries of MEMBERS that fall into it. Whoever inserts an entry adds one
//! before the insertion, and takes it back if the insertion fails. Whoever removes an entry subtracts one after the
//! removal has succeeded. An update of an entry changes nothing. All of this holds for both sides alike, so it does
//! not matter which side made the entry that is removed: one removal, one subtraction. Both sides use atomic
//! instructions.

/// Slots of the filter, a power of two: 64 KiB. With 600 members, one stranger in 27 is looked up.
pub const FILTER_SLOTS: usize = 1 << 14;

/// The only value of the map FILTER. A slot cannot overflow: Linux has fewer than 2^22 process numbers.
pub type Filter = [u32; FILTER_SLOTS];

pub const fn filter_slot(tgid: u32) -> usize {
    tgid as usize & (FILTER_SLOTS - 1)
}

// The daemon maps whole pages, whatever their size on this machine.
const _: () = assert!(FILTER_SLOTS.is_power_of_two() && size_of::<Filter>() == 64 << 10);

//! What one user may have of what all users share: entries of MEMBERS, and bytes of the ring.

/// Slots of the maps SHARES and `RING_SHARES`, a power of two.
pub const SHARE_SLOTS: usize = 1 << 12;

/// The only value of the maps SHARES and `RING_SHARES`. Both sides count in it with atomic instructions.
pub type Shares = [u32; SHARE_SLOTS];

/// The first user id that is delegated to containers: subuid(5).
const FIRST_SUB: u32 = 100_000;
/// How many ids one user gets, by default in subuid(5) and in systemd-nspawn(1).
const BLOCK: u32 = 1 << 16;

/// The user id that stands for this one: the first of a range of numbers that was delegated to one user, who can choose any of
/// them and has one share.
pub const fn share_user(uid: u32) -> u32 {
    if uid < FIRST_SUB { uid } else { uid - (uid - FIRST_SUB) % BLOCK }
}

/// The slot that the processes of a user are counted in. Each daemon has another `seed`, so that nobody can choose a user id that
/// shares the slot of another user.
pub const fn share_slot(uid: u32, seed: u32) -> usize {
    ((share_user(uid) ^ seed).wrapping_mul(0x9e37_79b1) >> 20) as usize
}

/// What a record of so many bytes takes of the ring: its own header, and it begins at a multiple of eight.
pub const fn ring_cost(len: u32) -> u32 {
    (len + 8 + 7) & !7
}

// The daemon maps whole pages. Every hash is a slot.
const _: () = assert!(size_of::<Shares>() == 16 << 10 && SHARE_SLOTS == 1 << (32 - 20));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_numbers_is_one_user() {
        for seed in [0, 1, 0x1234_5678, u32::MAX] {
            assert_eq!(share_slot(100_000, seed), share_slot(165_535, seed));
            assert_eq!(share_slot(100_001, seed), share_slot(165_000, seed));
            assert_eq!(
                [99_999, 165_535, 165_536, u32::MAX].map(share_user).map(share_user),
                [99_999, 100_000, 165_536, 4_294_936_224]
            );
        }
        let users = [0, 1000, 1001, 99_999, 100_000, 165_536, u32::MAX];
        for (n, one) in users.iter().enumerate() {
            for two in &users[n + 1..] {
                // Two users may share a slot for some seed, never for all.
                assert!(
                    (0..8).any(|seed| share_slot(*one, seed) != share_slot(*two, seed)),
                    "{one} and {two}"
                );
            }
        }
    }

    #[test]
    fn a_record_takes_whole_words_and_a_header() {
        assert_eq!([1, 8, 9, 32, 56].map(ring_cost), [16, 16, 24, 40, 64]);
    }
}

//! Whose share something counts for, where many users have to get along with little room.

/// The first number that is given to users of containers: subuid(5).
const FIRST_SUB: u32 = 100_000;
/// How many one user gets at a time, there and by systemd-nspawn(1).
const BLOCK: u32 = 65_536;

/// For each user: runs that are over and remembered, beside the last of each key.
pub const RUNS_OF_USER: usize = 256;
/// For each user: keys of which nothing lives and that are remembered.
pub const KEYS_OF_USER: usize = 64;
/// Of all users: runs that are over and remembered.
pub const RUNS_OF_ALL: usize = 4096;

/// A user, or all those that one user may be: whoever has a range of numbers for containers is one, not 65,536.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// The share that a user's things count for.
    pub const fn of(uid: u32) -> Self {
        match uid.checked_sub(FIRST_SUB) {
            Some(above) => Self(FIRST_SUB + above / BLOCK),
            None => Self(uid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_numbers_is_one_user() {
        assert_ne!(Share::of(1000), Share::of(1001));
        assert_ne!(Share::of(99_999), Share::of(100_000));
        assert_eq!(Share::of(100_000), Share::of(165_535));
        assert_ne!(Share::of(165_535), Share::of(165_536));
        assert_eq!(Share::of(u32::MAX), Share::of(u32::MAX - 1));
    }
}

//! Fair shares: how the room for remembered runs is divided among users.

/// The first user id that is delegated to containers: subuid(5).
const FIRST_SUB: u32 = 100_000;
/// How many ids one user gets, by default in subuid(5) and in systemd-nspawn(1).
const BLOCK: u32 = 65_536;

/// The most finished runs that are remembered for each user, in addition to the last run of each key.
pub const RUNS_OF_USER: usize = 256;
/// The most keys without a live run that are remembered for each user.
pub const KEYS_OF_USER: usize = 64;
/// The most finished runs that are remembered for all users together.
pub const RUNS_OF_ALL: usize = 4096;

/// A user, or the whole range of ids that was delegated to one user: its 65,536 ids have one share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
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

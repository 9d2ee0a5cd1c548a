//! Membership: which thread groups the kernel side reports, and how many of them each user may have.

/// Length of `task_struct::comm`, its NUL included.
pub const COMM_LEN: usize = 16;

/// Value of the map MEMBERS, whose key is a tgid. Eight bytes, aligned: read and written as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Member {
    /// The thread group whose exec made this one pending. For one that user space inserted, itself.
    pub anchor: u32,
    /// A [`State`] in the lowest byte. Above it the slot of SHARES that this entry is counted in, plus one; 0 for one that
    /// user space inserted, and counts itself.
    pub state_and_slot: u32,
}

/// How far a thread group is followed; [`Member::is`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// A candidate, or a descendant of one, that user space has not judged yet. Reported like a member, within a budget of
    /// forks.
    Pending = 1,
    /// Everything it does is reported; its children become members.
    Member = 2,
    /// A member whose exit wakes the reader at once.
    Agent = 3,
    /// The parent of a candidate: only its exit is reported, and wakes the reader.
    Watched = 4,
    /// A service manager: its exit is reported, and every exec of its children.
    Manager = 5,
    /// User space does not follow it any more. Nothing is reported, and its next event removes it: only the kernel side
    /// removes what it has counted in SHARES.
    Dropped = 6,
}

const STATE: u32 = 0xff;
const SLOT_SHIFT: u32 = 8;

impl Member {
    /// Not counted in any slot.
    pub const fn new(anchor: u32, state: State) -> Self {
        Self { anchor, state_and_slot: state as u32 }
    }

    /// From the eight bytes of a map's value.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the value")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { anchor: bits as u32, state_and_slot: (bits >> 32) as u32 }
    }

    /// The same entry, counted in this slot.
    #[must_use]
    pub const fn with_slot(self, slot: u32) -> Self {
        Self { anchor: self.anchor, state_and_slot: self.state_and_slot & STATE | (slot + 1) << SLOT_SHIFT }
    }

    /// The same entry in this state.
    #[must_use]
    pub const fn with_state(self, state: State) -> Self {
        Self { anchor: self.anchor, state_and_slot: self.state_and_slot & !STATE | state as u32 }
    }

    /// Whether it is in this state.
    pub const fn is(self, state: State) -> bool {
        self.state_and_slot & STATE == state as u32
    }

    /// The slot of SHARES that it is counted in. None: user space inserted it.
    pub const fn slot(self) -> Option<u32> {
        (self.state_and_slot >> SLOT_SHIFT).checked_sub(1)
    }

    /// Whether only its exit is reported: it is in the map because of its children.
    pub const fn reports_only_exit(self) -> bool {
        self.is(State::Watched) || self.is(State::Manager)
    }
}

/// Slots of the map SHARES.
pub const SHARE_SLOTS: u32 = 1 << 12;

/// The slot of SHARES that the processes of a user are counted in. Each daemon has another `seed`, so that nobody can choose
/// a user id that shares the slot of another user.
pub const fn share_slot(uid: u32, seed: u32) -> u32 {
    (uid ^ seed).wrapping_mul(0x9e37_79b1) >> 20
}

/// Values of the map ANCHORS, whose key is the tgid of a candidate: how many forks below it were reported while it was
/// pending, or what user space has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor(pub u32);

impl Anchor {
    /// User space follows it: what is pending below it is a member.
    pub const CONFIRMED: Self = Self(u32::MAX);
    /// User space does not follow it: what is pending below it is removed.
    pub const REFUSED: Self = Self(u32::MAX - 1);
}

/// Values of the map CANDIDATES, whose key is a comm padded with NULs: when an exec is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Candidate {
    /// Always.
    Always = 1,
    /// If descriptor 0 is a pipe or a socket.
    NeedsWire = 2,
}

const _: () = assert!(size_of::<Member>() == 8);
// Every slot fits behind the state, and every hash is a slot.
const _: () = assert!(SHARE_SLOTS < 1 << (32 - SLOT_SHIFT));
const _: () = assert!(share_slot(0, u32::MAX) < SHARE_SLOTS && SHARE_SLOTS == 1 << (32 - 20));

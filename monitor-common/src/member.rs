//! Membership: which thread groups the kernel side reports, and how many each user may have among them.

/// Length of `task_struct::comm`, its NUL included.
pub const COMM_LEN: usize = 16;

/// Value of the map MEMBERS, whose key is a tgid. Eight bytes, aligned: read and written as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Member {
    /// The thread group whose exec made this one pending; itself for one that user space entered.
    pub anchor: u32,
    /// A [`State`] in the lowest byte; above it the slot in SHARES that it is counted in, plus one. 0: user space entered it, it
    /// is counted there.
    pub standing: u32,
}

/// How far a thread group is followed; [`Member::is`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// A candidate's exec, or a descendant of one, that user space has not judged yet. Reported like a
    /// member within a budget of forks.
    Pending = 1,
    /// Everything it does is reported; its children become members.
    Member = 2,
    /// A member whose exit wakes the reader at once.
    Agent = 3,
    /// The parent of a candidate: only its exit is reported, and wakes the reader.
    Watched = 4,
    /// A service manager: its exit is reported, and every exec of a child of it.
    Manager = 5,
    /// User space does not want it any more. Nothing is reported, and its next event removes it: only the kernel side takes out
    /// what it counts.
    Dropped = 6,
}

const STATE: u32 = 0xff;
const SLOT_SHIFT: u32 = 8;

impl Member {
    /// Not counted in any slot.
    pub const fn new(anchor: u32, state: State) -> Self {
        Self { anchor, standing: state as u32 }
    }

    /// From the eight bytes of a map's value.
    #[expect(clippy::cast_possible_truncation, reason = "each half is taken")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { anchor: bits as u32, standing: (bits >> 32) as u32 }
    }

    /// The same in this slot.
    #[must_use]
    pub const fn counted_in(self, slot: u32) -> Self {
        Self { anchor: self.anchor, standing: self.standing & STATE | (slot + 1) << SLOT_SHIFT }
    }

    /// The same in this state.
    #[must_use]
    pub const fn made(self, state: State) -> Self {
        Self { anchor: self.anchor, standing: self.standing & !STATE | state as u32 }
    }

    /// Whether it is in this state.
    pub const fn is(self, state: State) -> bool {
        self.standing & STATE == state as u32
    }

    /// The slot in SHARES that it is counted in.
    pub const fn slot(self) -> Option<u32> {
        (self.standing >> SLOT_SHIFT).checked_sub(1)
    }

    /// Whether what it does itself is not reported, only its exit: it is in the map for others' sake.
    pub const fn only_exits(self) -> bool {
        self.is(State::Watched) || self.is(State::Manager)
    }
}

/// Slots of the map SHARES.
pub const SLOTS: u32 = 1 << 12;

/// The slot that the processes of a user are counted in. `seed` is another one for each daemon: nobody can choose a user whose
/// slot is somebody else's.
pub const fn slot(uid: u32, seed: u32) -> u32 {
    (uid ^ seed).wrapping_mul(0x9e37_79b1) >> 20
}

/// Values of the map ANCHORS, whose key is the tgid of a candidate: how many forks below it were reported
/// while it was pending, or what user space decided about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor(pub u32);

impl Anchor {
    /// User space wants it: what is pending below it counts as member.
    pub const CONFIRMED: Self = Self(u32::MAX);
    /// User space does not want it: what is pending below it is forgotten.
    pub const REFUSED: Self = Self(u32::MAX - 1);
}

/// Values of the map CANDIDATES, whose key is a comm padded with NULs: when an exec is worth a report.
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
const _: () = assert!(SLOTS < 1 << (32 - SLOT_SHIFT) && slot(0, u32::MAX) < SLOTS && SLOTS == 1 << (32 - 20));

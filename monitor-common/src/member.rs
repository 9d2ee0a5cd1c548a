//! Membership: which thread groups the kernel side reports.

use crate::SHARE_SLOTS;

/// Length of `task_struct::comm`, its NUL included.
pub const COMM_LEN: usize = 16;

/// Value of the map MEMBERS, whose key is a tgid. Eight bytes, aligned: read and written as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Member {
    /// The thread group whose exec made this one pending. For one that user space inserted, itself.
    pub anchor: u32,
    /// A [`State`] in the lowest byte, above it the slot of SHARES that this entry is counted in.
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
}

const STATE: u32 = 0xff;
const SLOT_SHIFT: u32 = 8;

impl Member {
    /// Counted in this slot of SHARES.
    #[expect(clippy::cast_possible_truncation, reason = "a slot is below SHARE_SLOTS")]
    pub const fn new(anchor: u32, state: State, slot: usize) -> Self {
        Self { anchor, state_and_slot: state as u32 | (slot as u32) << SLOT_SHIFT }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the value")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { anchor: bits as u32, state_and_slot: (bits >> 32) as u32 }
    }

    #[must_use]
    pub const fn with_state(self, state: State) -> Self {
        Self { anchor: self.anchor, state_and_slot: self.state_and_slot & !STATE | state as u32 }
    }

    pub const fn is(self, state: State) -> bool {
        self.state_and_slot & STATE == state as u32
    }

    /// The slot of SHARES that it is counted in.
    pub const fn slot(self) -> usize {
        (self.state_and_slot >> SLOT_SHIFT) as usize & (SHARE_SLOTS - 1)
    }

    /// Whether only its exit is reported: it is in the map because of its children.
    pub const fn reports_only_exit(self) -> bool {
        self.is(State::Watched) || self.is(State::Manager)
    }
}

/// Value of the map ANCHORS, whose key is the tgid of a candidate. Eight bytes, aligned: read and written as one.
///
/// An evicted element may belong to another anchor while a program still points at it. So it names its anchor, and the
/// kernel side only ever adds to it: one fork too many for another anchor, never another decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Anchor {
    /// How many forks below it were reported while it was pending; above `FORKS` what user space has decided.
    pub forks_and_decision: u32,
    pub anchor: u32,
}

/// The bits of a number of forks.
const FORKS: u32 = (1 << 30) - 1;
/// User space follows it.
const CONFIRMED: u32 = 1 << 30;
/// User space does not follow it.
const REFUSED: u32 = 1 << 31;

impl Anchor {
    pub const fn new(anchor: u32) -> Self {
        Self { forks_and_decision: 0, anchor }
    }

    /// User space follows it: what is pending below it is a member.
    pub const fn confirmed(anchor: u32) -> Self {
        Self { forks_and_decision: CONFIRMED, anchor }
    }

    /// User space does not follow it: what is pending below it is removed.
    pub const fn refused(anchor: u32) -> Self {
        Self { forks_and_decision: REFUSED, anchor }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the value")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { forks_and_decision: bits as u32, anchor: (bits >> 32) as u32 }
    }

    pub const fn forks(self) -> u32 {
        self.forks_and_decision & FORKS
    }

    pub const fn is_confirmed(self) -> bool {
        self.forks_and_decision & CONFIRMED != 0
    }

    pub const fn is_refused(self) -> bool {
        self.forks_and_decision & REFUSED != 0
    }
}

/// Values of the map CANDIDATES, whose key is a comm padded with NULs: when an exec is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Candidate {
    Always = 1,
    NeedsWire = 2,
}

const _: () = assert!(size_of::<Member>() == 8 && size_of::<Anchor>() == 8);
// Every slot fits behind the state.
const _: () = assert!(SHARE_SLOTS < 1 << (32 - SLOT_SHIFT));

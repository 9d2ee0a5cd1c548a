//! Membership: which thread groups the kernel side reports.

/// Length of `task_struct::comm`, its NUL included.
pub const COMM_LEN: usize = 16;

/// Value of the map MEMBERS, whose key is a tgid. Eight bytes, aligned: read and written as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Member {
    /// The thread group whose exec made this one pending; itself for one that user space entered.
    pub anchor: u32,
    /// A [`State`].
    pub state: u32,
}

/// How far a thread group is followed; [`Member::state`].
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
}

impl Member {
    /// Whether what it does itself is not reported, only its exit: it is in the map for others' sake.
    pub const fn only_exits(self) -> bool {
        self.state == State::Watched as u32 || self.state == State::Manager as u32
    }
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

//! One user's trouble is nobody else's: whatever a user without rights does on the host, the orphan of an honest user beside
//! it is judged within its grace and one second. Each file is one kind of trouble.

mod crowd;
mod descriptors;
mod held;
mod long;
mod storm;

use std::time::Duration;

/// The grace of every daemon in these tests.
const GRACE: Duration = Duration::from_millis(300);

//! One user's trouble is nobody else's: whatever a user without rights does on the host, the orphan of an honest user beside
//! it is judged within its grace and four seconds. Each file is one kind of trouble.

mod agents;
mod copies;
mod crowd;
mod descriptors;
mod front;
mod heavy;
mod held;
mod labels;
mod long;
mod room;
mod shape;
mod storm;
mod stuck;

use std::time::Duration;

/// The grace of every daemon in these tests.
const GRACE: Duration = Duration::from_millis(300);

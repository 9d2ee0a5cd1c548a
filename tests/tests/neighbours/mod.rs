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

/// Becomes the program that it is given.
const BECOME: &str = "
import os, sys
os.execv(sys.argv[1], sys.argv[1:])
";

/// An agent with one server, whose wire it keeps until it ends.
const AGENT: &str = "#!/usr/bin/python3
import os, signal, sys
reads, writes = os.pipe()
answers, answer = os.pipe()
streams = [(os.POSIX_SPAWN_DUP2, reads, 0), (os.POSIX_SPAWN_DUP2, answer, 1)]
os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=streams)
os.close(reads)
os.close(answer)
signal.pause()
";

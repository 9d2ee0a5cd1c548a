//! The reasons of a verdict: evidence for an orphan, doubts that prevent the proof, guards that forbid a kill. This is the
//! one table of their names and words: text, JSON, the page and docs/events.md take them from here.
//!
//! Names are a contract with users. `short` is a phrase for a line, `says` and `changes` are sentences of `orphand explain`,
//! `about` explains the reason in the documentation.

use serde::{Deserialize, Serialize};

/// The words of a reason. In JSON it has its name and both sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub name: &'static str,
    #[serde(skip)]
    pub short: &'static str,
    /// What is so.
    pub says: &'static str,
    /// What would change it.
    pub changes: &'static str,
    #[serde(skip)]
    pub about: &'static str,
}

macro_rules! reasons {
    ($(#[$what:meta])* $kind:ident { $($variant:ident $name:literal
        short $short:literal
        says $says:literal
        changes $changes:literal
        about $about:literal)* }) => {
        $(#[$what])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $kind {
            $(#[doc = $about] #[serde(rename = $name)] $variant,)*
        }

        impl $kind {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn reason(self) -> &'static Reason {
                match self {
                    $(Self::$variant => &Reason { name: $name, short: $short, says: $says, changes: $changes, about: $about },)*
                }
            }
        }

        impl From<$kind> for &'static Reason {
            fn from(one: $kind) -> Self {
                one.reason()
            }
        }
    };
}

/// `owner exited, stdin hung up`.
pub fn list(all: &[impl Copy + Into<&'static Reason>]) -> String {
    let short: Vec<&str> = all.iter().map(|one| (*one).into().short).collect();
    short.join(", ")
}

reasons! {
    /// A fact that speaks for "orphan".
    Evidence {
        OwnerExited "owner_exited"
            short "owner exited"
            says "Its owner has exited."
            changes "Nothing undoes that, unless a living process turns out to be its owner."
            about "The owner's exit was witnessed, by this daemon or an earlier one of this boot."
        StdinHangup "stdin_hangup"
            short "stdin hung up"
            says "Nobody outside holds the other end of its standard input."
            changes "This changes if somebody gets an end of that pipe or socket."
            about "Nobody outside of the server holds the other end of its standard input."
        StaleInvocation "stale_invocation"
            short "it belongs to an earlier start of its unit"
            says "Its unit has been started again since it began."
            changes "Nothing undoes that."
            about "Its unit has been started again since."
        UnitStopped "unit_stopped"
            short "its unit is stopped"
            says "Its unit is stopped."
            changes "This changes if the unit is started again."
            about "Its unit has been stopped."
        SessionExpired "session_expired"
            short "its session has expired"
            says "The session that it was started for has expired."
            changes "This changes if the key of the session comes back."
            about "The session that it was started for has expired: its key has been missing in the registry for the configured time."
        IdleDuplicate "idle_duplicate"
            short "it is idle, and a newer one of its kind is in use"
            says "It has done nothing for the time of idle_duplicates, and a newer server of the same identity is in use."
            changes "This changes if it does anything, or the newer one ends."
            about "It is a duplicate, and its owner's rule says that those are ended (`idle_duplicates`): for so long it did nothing, while \
                a newer server of the same identity has worked."
        Released "released"
            short "it was released"
            says "It was released: its user, or root, said that it is done with (`orphand release`)."
            changes "This changes if it is used."
            about "It was released: its own user, or root, said that it is done with (`orphand release`)."
        SpawnerThreadExited "spawner_thread_exited"
            short "the thread that started it has exited"
            says "The thread of its owner that started it has ended."
            changes "Nothing undoes that."
            about "The thread of its living owner that started it has ended. It proves something only where a rule for the owner says \
                `thread_scoped`."
        NoOwner "no_owner"
            short "no owner found"
            says "It was found without an owner, which alone proves nothing."
            changes "A daemon that runs when servers start knows their owners."
            about "It was found without an owner. Alone this proves nothing."
        Abandoned "abandoned"
            short "its owner lives and has abandoned it"
            says "Its owner lives and has abandoned it."
            changes "This changes if it does something again, or somebody speaks to it."
            about "Its owner is alive and has abandoned it: the owner let go of both of its wires, or closed its standard input after the \
                head of its launch chain was ended, and it has written nothing since."
    }
}

reasons! {
    /// What keeps a server from being an orphan: somebody may still use it.
    Doubt {
        WireHeld "wire_held"
            short "another process holds its stdin"
            says "Another process may speak to its standard input."
            changes "This ends when that process closes its end, or exits."
            about "A process outside of the server has the other end of its standard input, and may speak to it at any time. Or somebody may \
                have it whom nobody can see: it is on its way through a socket, `io_uring` keeps it, or only /proc could be asked."
        StdoutRead "stdout_read"
            short "another process reads its stdout"
            says "Another process may read its standard output."
            changes "This ends when that process closes its end, or exits."
            about "Likewise the other end of its standard output: somebody may wait for results."
        WireUnknown "wire_unknown"
            short "it is not known who holds its wires"
            says "It is not known who holds its wires."
            changes "This ends when a look sees all of their ends."
            about "It is not known who holds its wires. The other end cannot be asked for: a connection that nobody has accepted yet, a \
                network namespace that is closed to orphand, an end of its own that the server may have hidden. Or five inspections have \
                failed, for instance because a process could not be read."
        OwnerUnknown "owner_unknown"
            short "it is not known for whom it works"
            says "It is not known for whom it works: nobody saw who made its wires, or another program made its output than its input."
            changes "This ends if its owner is found, or its unit is stopped."
            about "It is not known for whom it works. Nobody saw who made its wires, or the maker had ended before it was known what it was, or another \
                program made its standard output than its standard input. And nothing else proves that it was left behind."
        Clients "clients"
            short "a client may call it"
            says "A client may be connected to it, or call it."
            changes "This ends when its clients have gone, over TCP ten minutes later; where somebody may call it unseen, when it listens no longer."
            about "A client from outside has a connection to one of its sockets or waits for one, or had one over TCP within the last ten \
                minutes. Or nobody can tell: a unix socket that was ever connected to, datagrams, a port that it was told to serve at."
        Traced "traced"
            short "a debugger is attached"
            says "A debugger traces it."
            changes "This ends when the debugger lets it go."
            about "A process outside of it, such as a debugger, traces one of its threads."
        DependedOn "depended_on"
            short "something would end with it that is no part of it"
            says "Something that is no part of it would end or stop with it."
            changes "This ends when what depends on it has gone."
            about "Something that is no part of it would end or stop with it: who works in a terminal that it opened or in its PID namespace, \
                the users of a file system or a device that it serves, a program that it debugs."
        OnlyNamed "only_named"
            short "only its name, or a message that it has not read, says that it is a server"
            says "Only its name, or a message that it has not read, says that it is a server."
            changes "A message of the protocol that it reads, settings that declare it, or a rule would show it."
            about "It is known by its name alone: no message of the protocol to it was seen, no settings declare it, and it is no known \
                package. Or no rule knows it, and what was written to it still waits to be read. And no rule knows the program that \
                started it, or that had ended before anybody looked. It may be a job that is only called, or spoken to, like a server."
        Active "active"
            short "it was used since it was given up, or a call of it may be under way"
            says "It was used since it was given up, or has not been at rest for long enough, or a call of it may be under way."
            changes "Rest ends this only if it was not used: else it stays until its owner ends, it is released again, or its session lives \
                and expires anew."
            about "It was released, or its session has expired, and yet somebody may use it: since then it has read or written something, or \
                has not been at rest for `abandoned_grace`. Or it is an idle duplicate that may owe an answer: a request waits to be read, a \
                process that it started lives, it has a connection, or it waits for a time."
        Working "working"
            short "a tool that it started is at work"
            says "A tool that it started is at work."
            changes "This ends with the tool, at the latest after the time of work_grace."
            about "A tool that it started goes on with its work: it has used the processor, has read or written something, or has just \
                begun; or it rests, but waits for a time, or for somebody to whom it is connected. It has until `deadline` (`work_grace`)."
        Stopping "stopping"
            short "its unit is being stopped"
            says "Its unit is being stopped: its manager is ending it."
            changes "This ends when the unit is stopped, at the latest after the time of work_grace."
            about "Its unit is being stopped (systemd says `deactivating`): its manager is ending it, and lets it save what it has. It has \
                until `deadline` (`work_grace`)."
    }
}

reasons! {
    /// A fact that forbids ending an orphan.
    Guard {
        ExemptRule "exempt_rule"
            short "a rule exempts it"
            says "A rule of the configuration exempts it."
            changes "Take the rule away, then: sudo orphand reload"
            about "A rule of the configuration exempts it."
        OptedOut "opted_out"
            short "it opted out"
            says "ORPHAND_OPT_OUT=1 is in its environment, or its environment cannot be read."
            changes "Start it without that variable."
            about "`ORPHAND_OPT_OUT=1` is in the environment of one of its processes, or an environment cannot be read to its end."
        Multiplexer "multiplexer"
            short "it contains a terminal multiplexer"
            says "A terminal multiplexer lives in it."
            changes "This ends when the multiplexer has exited."
            about "A terminal multiplexer (tmux, screen or the like) lives in it or below it."
        OtherUid "other_uid"
            short "it, or a part of it, runs as another user"
            says "It, or a part of it, runs as another user than its owner, or than it was started as."
            changes "orphand does not end it, nor does sudo orphand reap: kill PID does."
            about "It, or something that belongs to it, runs as another user than its owner, or, without a known owner, than the one as whom it \
                was started."
        LiveAgent "live_agent"
            short "it is an agent that lives"
            says "It is an agent that lives."
            changes "orphand ends one only if its unit has gone on without it, nobody uses it, and its rule says reap = true."
            about "It is an agent that lives. One is ended only if its unit has gone on without it, nobody uses it, and its rule says \
                `reap = true`."
        LiveAgentBelow "live_agent_below"
            short "a live agent is below it"
            says "An agent that lives is below it."
            changes "This ends when that agent has exited."
            about "A live agent is below it."
        OwnUnit "own_unit"
            short "systemd manages it as a unit"
            says "It runs in a unit that is active, and may be what the unit is for."
            changes "This ends when the unit is stopped: systemctl stop UNIT"
            about "It was found without an owner in a systemd unit that is still running: it may be what the unit is for."
        Observe "observe"
            short "orphand is paused or only observes"
            says "orphand is paused, or was told to observe only."
            changes "orphand mode says which, and who decided that; sudo orphand resume ends a pause; a person may end it: sudo orphand \
                reap"
            about "orphand is paused (`orphand resume` ends that), or was told to observe only."
        Found "found"
            short "orphand does not know all of its past: only you end it"
            says "It was there before the first start of orphand, or before what orphand knew was lost, so nobody knows all of its past."
            changes "A person ends it: sudo orphand reap. Or found = \"end\" in the configuration."
            about "It was there before the first start of orphand on this host, and nobody saw how it came to be left behind; or what an earlier \
                orphand knew of it may be lost, such as what it let go: the store was damaged, or could not be read or written. Only a \
                person ends it (`orphand reap`), or the setting `found = \"end\"`."
        Container "container"
            short "it works in a container"
            says "It works in a container, which a signal to it would not end."
            changes "Name the engine of the container in [containers] (orphand doctor and the log say whether it answers), or stop the container."
            about "It is the client of a container (`docker run`, `podman exec`). A signal would end the client alone, and the container \
                would live on. Without its engine (`[containers]`) it cannot be stopped, or it is not certain which container it is. Or it \
                was found in a container, without a client and an owner: its engine would know nothing of a signal. `container` has the \
                command that a person can run."
    }
}

impl Doubt {
    /// Whether it counts for the time of `work_grace` at most.
    pub const fn has_deadline(self) -> bool {
        matches!(self, Self::Working | Self::Stopping)
    }
}

impl Guard {
    /// Whether `orphand reap` ends what stays because of this guard alone: a person decides.
    pub const fn yields_to_person(self) -> bool {
        matches!(self, Self::Observe | Self::Found)
    }
}

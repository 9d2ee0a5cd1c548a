//! The only list of programs, other than Rust, that tests and packaging call.

use std::process::Command;

use crate::command;

/// A program that the tests need, how to see that it is there, and Debian's packages for it.
pub struct Program {
    /// Its name, for people.
    pub name: &'static str,
    /// A command line that succeeds where it is there and whole.
    pub proof: &'static [&'static str],
    /// The packages that have it.
    pub packages: &'static [&'static str],
    /// The names by which tests of the first round call it; none where only others do.
    pub first: &'static [&'static str],
}

impl Program {
    /// Whether it is there and whole, in `PATH` too where tests look for it there.
    pub fn is_there(&self) -> bool {
        if !self.first.iter().all(|name| command::find(name).is_some()) {
            return false;
        }
        let Some((name, args)) = self.proof.split_first() else { return false };
        command::output(Command::new(name).args(args)).is_ok()
    }
}

/// What the tests need beside Rust: real MCP servers and clients are Python and Node.js programs, one drives a
/// browser, tmux is a guard, and systemd is booted in namespaces whether the machine runs it or not.
pub const TESTS: [Program; 22] = [
    Program { name: "Python", proof: &["python3", "-c", ""], packages: &["python3"], first: &["python3"] },
    Program {
        name: "Python with venv",
        proof: &["python3", "-c", "import ensurepip, venv"],
        packages: &["python3", "python3-venv"],
        first: &[],
    },
    Program { name: "Node.js", proof: &["node", "--version"], packages: &["nodejs"], first: &["node"] },
    Program { name: "npm", proof: &["npm", "--version"], packages: &["npm"], first: &[] },
    Program {
        name: "chromium",
        proof: &["test", "-x", "/usr/bin/chromium"],
        packages: &["chromium"],
        first: &[],
    },
    Program {
        name: "Prometheus",
        proof: &["test", "-x", "/usr/bin/prometheus", "-a", "-x", "/usr/bin/promtool"],
        packages: &["prometheus"],
        first: &[],
    },
    Program {
        name: "a C++ compiler (of libFuzzer)",
        proof: &["c++", "--version"],
        packages: &["g++"],
        first: &[],
    },
    Program {
        name: "ext4 and fsfreeze (a disk that hangs)",
        proof: &["test", "-x", "/usr/sbin/mkfs.ext4", "-a", "-x", "/usr/sbin/fsfreeze"],
        packages: &["e2fsprogs", "util-linux"],
        first: &[],
    },
    Program { name: "make", proof: &["make", "--version"], packages: &["make"], first: &[] },
    // Servers in containers: the image is made of a busybox that needs no library.
    Program {
        name: "Docker",
        proof: &["test", "-x", "/usr/bin/docker", "-a", "-x", "/usr/sbin/dockerd"],
        packages: &["docker.io"],
        first: &[],
    },
    Program {
        name: "docker-compose",
        proof: &["/usr/bin/docker-compose", "version", "--short"],
        packages: &["docker-compose"],
        first: &[],
    },
    Program {
        name: "podman",
        proof: &["test", "-x", "/usr/bin/podman", "-a", "-x", "/usr/bin/conmon"],
        packages: &["podman"],
        first: &[],
    },
    Program {
        name: "a static busybox",
        proof: &["sh", "-c", "test -x /bin/busybox && ! ldd /bin/busybox"],
        packages: &["busybox-static"],
        first: &[],
    },
    Program { name: "tmux", proof: &["test", "-x", "/usr/bin/tmux"], packages: &["tmux"], first: &[] },
    Program {
        name: "systemd",
        proof: &["test", "-x", "/lib/systemd/systemd"],
        packages: &["systemd"],
        first: &[],
    },
    Program {
        name: "D-Bus for systems and users",
        proof: &["test", "-x", "/usr/bin/dbus-daemon", "-a", "-e", "/usr/lib/systemd/user/dbus.socket"],
        packages: &["dbus", "dbus-user-session"],
        first: &[],
    },
    // The examples of alert hooks are run against the real thing.
    Program {
        name: "curl and jq",
        proof: &["test", "-x", "/usr/bin/curl", "-a", "-x", "/usr/bin/jq"],
        packages: &["curl", "jq"],
        first: &["curl", "jq"],
    },
    Program {
        name: "notify-send and Python's D-Bus",
        proof: &[
            "test",
            "-x",
            "/usr/bin/notify-send",
            "-a",
            "-e",
            "/usr/lib/python3/dist-packages/dbus/service.py",
        ],
        packages: &["libnotify-bin", "python3-dbus", "python3-gi"],
        first: &[],
    },
    // The package's pages are looked for as a person would.
    Program { name: "man", proof: &["test", "-x", "/usr/bin/man"], packages: &["man-db"], first: &[] },
    Program {
        name: "msmtp",
        proof: &["test", "-x", "/usr/bin/msmtp"],
        packages: &["msmtp"],
        first: &["msmtp"],
    },
    // The registry of sessions.
    Program {
        name: "Redis",
        proof: &["test", "-x", "/usr/bin/redis-server"],
        packages: &["redis-server"],
        first: &[],
    },
    Program {
        name: "shellcheck",
        proof: &["test", "-x", "/usr/bin/shellcheck"],
        packages: &["shellcheck"],
        first: &["shellcheck"],
    },
];

/// What the test on a machine of its own needs beside those: the machine, and what packs and loads its kernel's parts.
pub const VM: [Program; 4] = [
    Program {
        name: "QEMU",
        proof: &["qemu-system-x86_64", "--version"],
        packages: &["qemu-system-x86"],
        first: &[],
    },
    Program { name: "cpio", proof: &["cpio", "--version"], packages: &["cpio"], first: &[] },
    Program {
        name: "the tools for kernel modules",
        proof: &["test", "-x", "/usr/sbin/modprobe", "-a", "-x", "/usr/sbin/depmod"],
        packages: &["kmod"],
        first: &[],
    },
    Program {
        name: "systemd",
        proof: &["test", "-x", "/usr/lib/systemd/systemd", "-a", "-x", "/usr/bin/systemctl"],
        packages: &["systemd"],
        first: &[],
    },
];

/// What packs what is handed out; the rest of it comes with every compiler of C.
pub const DIST: [Program; 1] =
    [Program { name: "xz", proof: &["xz", "--version"], packages: &["xz-utils"], first: &[] }];

/// What the test of what is handed out needs beside those for all: what makes a clean root, and what judges a package.
pub const PACKAGE: [Program; 2] = [
    MMDEBSTRAP,
    Program { name: "lintian", proof: &["lintian", "--version"], packages: &["lintian"], first: &[] },
];

/// What the test on a machine that has nothing needs.
pub const FRESH: [Program; 1] = [MMDEBSTRAP];

const MMDEBSTRAP: Program = Program {
    name: "mmdebstrap",
    proof: &["mmdebstrap", "--version"],
    packages: &["mmdebstrap"],
    first: &[],
};

//! The only list of programs, other than Rust, that tests and packaging call.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::command;

/// What the tests need beside Rust: real MCP servers and clients are Python and Node.js programs, one drives a
/// browser, tmux is a guard, systemd is booted in namespaces whether the machine runs it or not, the image of containers
/// is made of a busybox that needs no library, and the examples of alert hooks are run against the real thing.
///
/// Its name | a command line that succeeds where it is there and whole | Debian's packages for it | the names by which
/// tests of the first round call it; none where only others do.
pub const TESTS: &str = "
Python | python3 -c '' | python3 | python3
Python with venv | python3 -c 'import ensurepip, venv' | python3 python3-venv |
Node.js | node --version | nodejs | node
npm | npm --version | npm |
chromium | test -x /usr/bin/chromium | chromium |
Prometheus | test -x /usr/bin/prometheus -a -x /usr/bin/promtool | prometheus |
a C++ compiler (of libFuzzer) | c++ --version | g++ |
ext4 and fsfreeze (a disk that hangs) | test -x /usr/sbin/mkfs.ext4 -a -x /usr/sbin/fsfreeze | e2fsprogs util-linux |
make | make --version | make |
Docker | test -x /usr/bin/docker -a -x /usr/sbin/dockerd | docker.io |
docker-compose | /usr/bin/docker-compose version --short | docker-compose |
podman | test -x /usr/bin/podman -a -x /usr/bin/conmon | podman |
a static busybox | test -x /bin/busybox && ! ldd /bin/busybox | busybox-static |
tmux | test -x /usr/bin/tmux | tmux |
systemd | test -x /lib/systemd/systemd | systemd |
D-Bus | test -x /usr/bin/dbus-daemon -a -e /usr/lib/systemd/user/dbus.socket | dbus dbus-user-session |
curl and jq | test -x /usr/bin/curl -a -x /usr/bin/jq | curl jq | curl jq
notify-send | test -x /usr/bin/notify-send | libnotify-bin |
Python's D-Bus | test -e /usr/lib/python3/dist-packages/dbus/service.py | python3-dbus python3-gi |
man | test -x /usr/bin/man | man-db |
msmtp | test -x /usr/bin/msmtp | msmtp | msmtp
Redis | test -x /usr/bin/redis-server | redis-server |
shellcheck | test -x /usr/bin/shellcheck | shellcheck | shellcheck
";

/// What the test on a machine of its own needs beside those: the machine, and what packs and loads its kernel's parts.
pub const VM: &str = "
QEMU | qemu-system-x86_64 --version | qemu-system-x86 |
cpio | cpio --version | cpio |
the tools for kernel modules | test -x /usr/sbin/modprobe -a -x /usr/sbin/depmod | kmod |
systemd | test -x /usr/lib/systemd/systemd -a -x /usr/bin/systemctl | systemd |
";

/// What packs what is handed out; the rest of it comes with every compiler of C.
pub const DIST: &str = "xz | xz --version | xz-utils |";

/// What the test of what is handed out needs beside those for all: what makes a clean root, and what judges a package.
pub const PACKAGE: &str = "
mmdebstrap | mmdebstrap --version | mmdebstrap |
lintian | lintian --version | lintian |
";

/// What the test on a machine that has nothing needs.
pub const FRESH: &str = "mmdebstrap | mmdebstrap --version | mmdebstrap |";

/// A line of such a list.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    pub name: &'static str,
    pub proof: &'static str,
    pub packages: &'static str,
    first: &'static str,
}

pub fn missing(list: &'static str) -> Vec<Program> {
    of(list).into_iter().filter(|program| !program.is_there()).collect()
}

fn of(list: &'static str) -> Vec<Program> {
    let lines = list.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim);
        let [name, proof, packages, first] = [(); 4].map(|()| cells.next());
        Some(Program { name: name?, proof: proof?, packages: packages?, first: first? })
    });
    lines.collect()
}

impl Program {
    /// Whether it is there and whole, in `PATH` too where tests look for it there.
    pub fn is_there(&self) -> bool {
        self.first.split(' ').all(|name| name.is_empty() || command::find(name).is_some())
            && command::output(Command::new("sh").args(["-c", self.proof])).is_ok()
    }
}

/// The names and the packages of programs, for people.
pub fn named(programs: &[Program]) -> (String, String) {
    let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
    let packages: Vec<&str> = programs.iter().map(|program| program.packages).collect();
    (names.join(", "), packages.join(" "))
}

/// An error names the programs that tests of the first round call and that are missing, and how they are installed.
pub fn found() -> Result<()> {
    let mut missing = missing(TESTS);
    missing.retain(|program| !program.first.is_empty());
    let (names, packages) = named(&missing);
    ensure!(
        missing.is_empty(),
        "the tests call what is not here: {names}. As root: apt-get install {packages}; or let `cargo xtask setup --tests` \
         do it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_lists_is_a_program() {
        for (list, count) in [(TESTS, 23), (VM, 4), (DIST, 1), (PACKAGE, 2), (FRESH, 1)] {
            let programs = of(list);
            assert!(programs.iter().all(|one| ![one.name, one.proof, one.packages].contains(&"")));
            assert_eq!(programs.len(), count);
        }
    }

    #[test]
    fn programs_are_named_with_their_packages() {
        let mut two = of(TESTS);
        two.retain(|program| ["msmtp", "curl and jq"].contains(&program.name));
        assert_eq!(named(&two), ("curl and jq, msmtp".to_owned(), "curl jq msmtp".to_owned()));
    }
}

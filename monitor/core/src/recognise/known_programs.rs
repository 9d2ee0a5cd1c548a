//! Lists of well-known programs: shells, launchers, multiplexers, hosts of other programs, and tools whose
//! arguments prove nothing.
//!
//! The lists are sorted for binary search; a test checks that.

/// Command-line interpreters. The text of a shell's `-c` is never examined: the server that it starts is seen
/// by itself, and a text that names a server may be a search for it.
#[rustfmt::skip]
pub(super) const SHELLS: &[&str] = &[
    "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "oksh", "osh", "posh",
    "pwsh", "rbash", "sh", "tcsh", "toybox", "xonsh", "yash", "zsh",
];

/// Programs that run the command in their arguments on their own standard streams, by exec or as a child.
/// Their arguments are not examined, because the program itself is seen. Not what runs it on another host (ssh).
#[rustfmt::skip]
pub(super) const LAUNCHERS: &[&str] = &[
    "arch", "asdf", "aws-vault", "bundle", "bundler", "bwrap", "cargo", "catchsegv", "chamber", "choom", "chpst",
    "chroot", "chrt", "conda", "cross-env", "dbus-run-session", "devbox", "direnv", "doas", "doppler", "dotenv",
    "dotenvx", "env", "env-cmd", "envdir", "expect", "fakeroot", "firejail", "flatpak", "flock", "fnm", "gdb", "go",
    "gosu", "gtimeout", "hatch", "heaptrack", "infisical", "ionice", "just", "linux32", "linux64", "ltrace",
    "make", "mamba", "micromamba", "mise", "ni", "nice", "nix", "nix-shell", "nocache", "nohup", "nr", "nsenter",
    "numactl", "nvm-exec", "op", "pdm", "perf", "pipenv", "pixi", "pkexec", "poetry", "prlimit", "proot", "proto",
    "proxychains", "proxychains4", "rtx", "runcon", "runuser", "rye", "s6-setuidgid", "script", "secret-tool", "setarch",
    "setpriv", "setsid", "setuidgid", "shim", "sops", "sshpass", "stdbuf", "strace", "su", "su-exec", "sudo",
    "swift", "systemd-cat", "systemd-inhibit", "systemd-run", "taskset", "time", "timeout", "torsocks", "unbuffer",
    "unshare", "uvw", "valgrind", "volta", "with-contenv", "x86_64", "xargs", "xvfb-run",
];

/// Terminal multiplexers and session managers. What runs in them is meant to outlive its creator.
#[rustfmt::skip]
pub(super) const MULTIPLEXERS: &[&str] = &[
    "SCREEN", "abduco", "dtach", "dvtm", "etserver", "etterminal", "mosh-server", "screen", "shpool", "tmate", "tmux",
    "wezterm-mux-server", "zellij",
];

/// Never ended, and neither is anything below them. conmon holds the streams of a podman container, which
/// dies with it.
pub(super) const EXEMPT: &[&str] = &["conmon", "conmonrs"];

/// Programs that host or adopt others: init systems, container runtimes and their init stubs, schedulers, process
/// supervisors, and runners that restart a developer's program.
///
/// Each of these starts programs on pipes or sockets of its own: supervisors read logs, inetd serves connections, a
/// container's shim relays streams. So having created the wire of a server does not make such a program its agent. The
/// process of a remote login (sshd) stands for the client at the other host, and ends with the connection.
#[rustfmt::skip]
pub(super) const STEWARDS: &[&str] = &[
    "(sd-pam)", "agetty", "anacron", "atd", "buildkitd", "catatonit", "circusd", "concurrently", "containerd", "crio",
    "cron", "crond", "crun", "dbus-broker", "dbus-broker-launch", "dbus-daemon", "dinit", "docker-init",
    "docker-proxy", "dockerd", "dumb-init", "fcron", "finit", "foreman", "forever", "getty", "god", "hivemind",
    "honcho", "inetd", "init", "kubelet", "lightdm", "linuxrc", "login", "monit", "my_init", "nodemon", "openrc",
    "openrc-init", "openrc-run", "overmind", "pm2", "pm2-runtime", "process-compose", "rootlesskit", "runc", "runit",
    "runit-init", "runsv", "runsvdir", "s6-linux-init", "s6-supervise", "s6-svscan", "sddm", "start-stop-daemon",
    "supervise", "supervise-daemon", "supervisord", "svscan", "systemd", "tcpserver", "tini", "tini-static",
    "upstart", "watchexec", "xinetd", "youki",
];

/// Tools that take names as arguments, also those of servers: for searching, showing, editing, building,
/// testing, installing. They are never servers, whatever their arguments are.
#[rustfmt::skip]
pub(super) const TOOLS: &[&str] = &[
    "ack", "ag", "apt", "apt-get", "ava", "awk", "basename", "bat", "biome", "black", "bpftrace", "cat", "cc", "cd",
    "chmod", "chown", "clang", "cmake", "cmp", "code", "column", "comm", "cp", "curl", "cut", "cypress", "date", "diff",
    "dirname", "dnf", "dpkg", "du", "echo", "egrep", "emacs", "entr", "esbuild", "eslint", "fd", "fdfind", "fgrep",
    "file", "find", "flake8", "fold", "fzf", "g++", "gawk", "gcc", "gh", "git", "gradle", "grep", "gzip", "head", "helix",
    "hexdump", "htop", "hx", "inspector", "isort", "jest", "journalctl", "jq", "kill", "killall", "less", "ln", "ls",
    "lsof", "man", "mcp-inspector", "mkdir", "mocha", "more", "most", "mv", "mvn", "mypy", "nano", "nc", "ninja", "nl",
    "nvim", "nyc", "od", "open", "patch", "pgrep", "pidof", "pip", "pip3", "pkill", "prettier", "printf", "ps", "pylint",
    "pyright", "pytest", "readlink", "realpath", "rg", "rm", "rollup", "rspec", "rsync", "ruff", "rustc", "scp", "sd",
    "sed", "seq", "sha256sum", "sleep", "socat", "sort", "split", "stat", "subl", "swc", "systemctl", "tac", "tail",
    "tar", "tee", "test", "top", "touch", "tox", "tr", "tree", "tsc", "tsup", "turbo", "uniq", "unzip", "vi",
    "view", "vim", "vite", "vitest", "watch", "watchman", "wc", "webpack", "wget", "whereis", "which", "xdg-open", "yq",
    "zcat", "zip",
];

/// Clients of container engines whose command lines are read: see [`super::container`].
pub(super) const CONTAINER_CLIENTS: &[&str] = &["docker", "nerdctl", "podman"];

/// Parts of the names of debuggers and of servers that are one.
#[rustfmt::skip]
pub(super) const DEBUGGERS: &[&str] = &[
    "debugger", "debugpy", "debugserver", "delve", "dlv", "edb", "frida", "gdb", "gdbserver", "lldb", "ltrace", "pydevd",
    "r2", "radare2", "rr", "strace",
];

/// Programs that open a file or an address in whatever program the desktop has for it.
#[rustfmt::skip]
pub(super) const OPENERS: &[&str] = &[
    "dde-open", "enlightenment_open", "exo-open", "gnome-open", "gvfs-open", "kde-open", "kde-open5", "kfmclient",
    "mate-open", "sensible-browser", "wslview", "www-browser", "x-www-browser", "xdg-email", "xdg-open",
];

/// By these a runtime starts other programs: it forks, runs one on its own streams, and that runs the program on the
/// streams that the runtime made for it. So their exec is a part of the fork.
pub(super) const SPAWN_HELPERS: &[&str] = &["jspawnhelper"];

/// These live, and start programs for others, on wires that they are handed: the runtime of Erlang has its ports started
/// so, and a program in Flatpak's sandbox what runs outside.
pub(super) const SPAWN_SERVERS: &[&str] = &["erl_child_setup", "flatpak-session-helper"];

/// Not Electron: it runs servers and tools as node does (`ELECTRON_RUN_AS_NODE`).
#[rustfmt::skip]
pub(super) const BROWSERS: &[&str] = &[
    "MiniBrowser", "brave", "brave-browser", "camoufox", "camoufox-bin", "chrome", "chrome-headless-shell", "chromium",
    "chromium-browser", "epiphany", "falkon", "firefox", "firefox-bin", "firefox-esr", "floorp",
    "google-chrome", "headless_shell", "konqueror", "librewolf", "microsoft-edge", "msedge", "opera", "qutebrowser",
    "vivaldi", "vivaldi-bin", "waterfox", "zen", "zen-bin",
];

pub(super) fn contains(list: &[&str], name: &str) -> bool {
    list.binary_search(&name).is_ok()
}

/// Whether the program hosts or adopts others.
pub(super) fn is_steward(name: &str) -> bool {
    contains(STEWARDS, name)
        || contains(SPAWN_SERVERS, name)
        || name.starts_with("containerd-shim")
        // systemd-executor, systemd-shutdown, systemd-logind ..; the launchers among them are tested earlier
        || name.starts_with("systemd-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_sorted_and_none_repeats_another() {
        let lists = [SHELLS, LAUNCHERS, MULTIPLEXERS, EXEMPT, STEWARDS, TOOLS, CONTAINER_CLIENTS];
        for list in lists.into_iter().chain([DEBUGGERS, OPENERS, BROWSERS, SPAWN_SERVERS]) {
            for pair in list.windows(2) {
                assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
            }
        }
        let mut all: Vec<_> = lists.concat();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert_ne!(pair[0], pair[1], "in two lists");
        }
    }
}

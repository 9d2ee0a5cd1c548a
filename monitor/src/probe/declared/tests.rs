//! Tests of which files are found, on this host and its /proc.

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio as Std},
};

use orphand_core::recognise::Notation;
use rustix::{
    fs::{CWD, FileType, Mode},
    process::{Pid, Signal, kill_process},
};

use super::*;
use crate::probe::tests::{Started, id};

const ENTRY: &str = r#"{"mcpServers":{"nap":{"command":"sleep","args":["600"]}}}"#;

/// A process `sleep 600` that works in a folder of a project, below a home.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["home/.cursor", "home/.codex", "project/.vscode", "project/src"] {
            fs::create_dir_all(place.0.path().join(folder)).unwrap();
        }
        place
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.path().join(file), text).unwrap();
    }

    fn says(&self) -> FirstMessage {
        self.says_after(&[])
    }

    fn says_after(&self, lines: &[Vec<String>]) -> FirstMessage {
        let mut command = Command::new("sleep");
        command.arg("600").current_dir(self.0.path().join("project/src"));
        let command = command.env("HOME", self.0.path().join("home")).stdin(Std::null());
        said(Started::new(command).id(), lines)
    }
}

/// What the files say that are gathered, without a helper.
fn said(process: ProcessId, lines: &[Vec<String>]) -> FirstMessage {
    let Gathered { question, files, .. } = Probe::new().unwrap().gather(&[candidate(process, lines)]);
    let name = settings::answer(question, files).pop().flatten();
    name.map_or(FirstMessage::Nothing, |name| FirstMessage::Declared { name })
}

fn candidate(process: ProcessId, lines: &[Vec<String>]) -> Candidate {
    Candidate { process, earlier: lines.to_vec() }
}

fn nap() -> FirstMessage {
    FirstMessage::Declared { name: "nap".to_owned() }
}

#[test]
fn the_files_of_project_and_home_are_found() {
    for (file, text) in [
        ("project/src/.mcp.json", ENTRY),
        ("project/.mcp.json", ENTRY),
        ("project/.vscode/mcp.json", r#"{"servers":{"nap":{"command":"sleep","args":["600"]}}}"#),
        ("home/.claude.json", ENTRY),
        ("home/.cursor/mcp.json", ENTRY),
        ("home/.codex/config.toml", "[mcp_servers.nap]\ncommand = 'sleep'\nargs = ['600']\n"),
    ] {
        let place = Place::new();
        assert_eq!(place.says(), FirstMessage::Nothing);
        place.write(file, text);
        assert_eq!(place.says(), nap(), "{file}");
        place.write(file, &text.replace("600", "60"));
        assert_eq!(place.says(), FirstMessage::Nothing, "other arguments in {file}");
    }
}

/// `claude --mcp-config own.json`, or the text itself. The twin is not told it, but what else may list servers.
#[test]
fn what_the_command_line_of_its_host_names_is_settings() {
    let services = ENTRY.replace("mcpServers", "servers");
    for (told, is_declared) in [
        (["--mcp-config", "own.json"], true),
        (["--mcp-config=own.json", "x"], true),
        (["--mcp-config", ENTRY], true),
        (["--mcp-config", "other.json"], false),
        (["supervise", "services.json"], false),
        (["supervise", &services], false),
    ] {
        let place = Place::new();
        place.write("own.json", ENTRY);
        place.write("services.json", &services);
        let script = "(cd project; exec sleep 600 < /dev/null > /dev/null) & echo $!; wait";
        let mut host = Command::new("sh");
        host.args(["-c", script, "host"]).args(told).current_dir(place.0.path()).env("HOME", "/nowhere");
        let (_host, pid) = Started::line_of(&mut host);
        let name = format!("/proc/{pid}/comm");
        while fs::read_to_string(&name).unwrap() != "sleep\n" {
            std::thread::yield_now();
        }
        let pid: i32 = pid.parse().unwrap();
        let says = said(id(pid.unsigned_abs()), &[]);
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        assert_eq!(says == nap(), is_declared, "{told:?}");
    }
}

#[test]
fn what_a_declared_shell_runs_in_its_place_is_declared() {
    let place = Place::new();
    place.write("project/.mcp.json", &ENTRY.replace("sleep", "sh").replace("600", "cd x"));
    for (before, told) in [("cd x", nap()), ("cd y", FirstMessage::Nothing)] {
        let lines = [["/bin/sh", before].map(str::to_owned).to_vec()];
        assert_eq!(place.says_after(&lines), told, "{before}");
    }
}

#[test]
fn a_file_that_is_none_is_passed_over() {
    let place = Place::new();
    let path = place.0.path().join("project/.mcp.json");
    for target in ["/dev/zero", "/proc/self/mem", "/proc/kmsg", "/sys/kernel/uevent_seqnum", "/nowhere", "."]
    {
        symlink(target, &path).unwrap();
        place.write("home/.claude.json", ENTRY);
        assert_eq!(place.says(), nap(), "{target}");
        fs::remove_file(&path).unwrap();
    }
    // Nobody would ever write to it.
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
    assert_eq!(place.says(), nap());
    fs::remove_file(&path).unwrap();
    symlink(place.0.path().join("home/.claude.json"), &path).unwrap();
    fs::rename(place.0.path().join("home/.claude.json"), place.0.path().join("home/.cursor/mcp.json"))
        .unwrap();
    symlink(".cursor/mcp.json", place.0.path().join("home/.claude.json")).unwrap();
    assert_eq!(place.says(), nap(), "a link to a file of the same user");
    let large = format!("{}{}", " ".repeat(usize::try_from(Notation::Json.longest()).unwrap()), ENTRY);
    place.write("home/.cursor/mcp.json", &large);
    assert_eq!(place.says(), FirstMessage::Nothing, "it is too large");
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn the_files_of_another_user_tell_nothing() {
    let place = Place::new();
    place.write("project/.mcp.json", ENTRY);
    assert_eq!(place.says(), nap());
    std::os::unix::fs::chown(place.0.path().join("project/.mcp.json"), Some(4321), None).unwrap();
    assert_eq!(place.says(), FirstMessage::Nothing);
}

/// What the settings say of a process of a user without rights, if they are a link to this file.
fn says_to_a_user(place: &Place, file: &Path) -> FirstMessage {
    for folder in ["", "project", "project/src", "home"] {
        fs::set_permissions(place.0.path().join(folder), Permissions::from_mode(0o755)).unwrap();
    }
    let _ = fs::remove_file(place.0.path().join("project/.mcp.json"));
    symlink(file, place.0.path().join("project/.mcp.json")).unwrap();
    let mut command = Command::new("sleep");
    command.arg("600").uid(64_003).current_dir(place.0.path().join("project/src"));
    let command = command.env("HOME", place.0.path().join("home")).stdin(Std::null());
    said(Started::new(command).id(), &[])
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn the_private_files_of_root_tell_nothing() {
    let place = Place::new();
    place.write("secret", ENTRY);
    let secret = place.0.path().join("secret");
    for (mode, told) in [(0o644, nap()), (0o640, FirstMessage::Nothing), (0o600, FirstMessage::Nothing)] {
        fs::set_permissions(&secret, Permissions::from_mode(mode)).unwrap();
        assert_eq!(says_to_a_user(&place, &secret), told, "{mode:o}");
    }
}

/// A file that everybody may read is as private as the folder that nobody may enter.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn the_files_below_a_private_folder_of_root_tell_nothing() {
    let place = Place::new();
    fs::create_dir_all(place.0.path().join("private/deep")).unwrap();
    place.write("private/deep/file", ENTRY);
    let secret = place.0.path().join("private/deep/file");
    for (mode, told) in [(0o755, nap()), (0o750, FirstMessage::Nothing), (0o700, FirstMessage::Nothing)] {
        fs::set_permissions(place.0.path().join("private"), Permissions::from_mode(mode)).unwrap();
        assert_eq!(says_to_a_user(&place, &secret), told, "{mode:o}");
    }
}

/// A set of trace files of its own.
struct Traced(PathBuf);

impl Drop for Traced {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).unwrap();
    }
}

/// Root's own process (a build in a hostile checkout) may read everything, the files of the kernel too.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_file_whose_reading_takes_what_is_in_it_is_not_read() {
    let mounted = fs::read_to_string("/proc/self/mounts").unwrap();
    let tracing = mounted.lines().find_map(|line| line.strip_prefix("tracefs "));
    let tracing = tracing.and_then(|line| line.split(' ').next()).expect("tracefs is not mounted");
    let traced = Traced(Path::new(tracing).join(format!("instances/orphand-{}", std::process::id())));
    fs::create_dir(&traced.0).unwrap();
    fs::write(traced.0.join("trace_marker"), ENTRY).unwrap();
    let pipe = traced.0.join("trace_pipe");
    let place = Place::new();
    symlink(&pipe, place.0.path().join("project/.mcp.json")).unwrap();
    assert_eq!(place.says(), FirstMessage::Nothing);
    assert_eq!(says_to_a_user(&place, &pipe), FirstMessage::Nothing);
    let left = fs::read_to_string(traced.0.join("trace")).unwrap();
    assert!(left.contains("mcpServers"), "{left}");
}

#[test]
fn one_that_is_gone_is_not_declared() {
    let mut sleeper = Started::sleeper(Std::null());
    let id = sleeper.id();
    sleeper.end();
    assert_eq!(Probe::new().unwrap().declared(&[candidate(id, &[])]), [FirstMessage::Nothing]);
}

//! The checks of the host. Each is independent of the others; its text says what was found, or what to do.

use std::{
    fs, io,
    os::unix::{fs::MetadataExt as _, net::UnixStream},
    path::Path,
    time::Duration,
};

use rustix::{
    fs::fstat,
    process::{Resource, geteuid, getrlimit},
    system::uname,
    thread::CapabilitySet,
};

use crate::{
    cli::Places,
    control::client::Client,
    host::{UnixSockets, identity, lock_holder},
    os::capabilities,
    sink::status::errors,
    source::{
        attach::{self, CALL_HOOK, HOST_NAMESPACES, HostNamespace, SIGNAL_HOOK},
        holders::HOOK,
        kernel::{BTF, KernelOptions, KernelSource},
        kernel_error::KernelError,
        layout,
    },
    store,
};
use orphand_core::model::{Check, Report, Status};

pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The free space in bytes below which there is a note: the store may grow to this size.
const ROOM: u64 = 64 << 20;

/// All checks except [`sight`]. Loads the eBPF programs unless a daemon has: only that proves that they load.
pub(super) fn of_host(places: &Places, lock: &Path) -> Vec<Check> {
    // A daemon with another lock answers at its socket.
    let answering = || Client::new(places.socket()).within(PATIENCE).status(false).ok();
    let running = lock_holder(lock).or_else(|| answering().map(|status| status.pid));
    // Before the programs are loaded, because that raises the limit.
    let memlock = memlock(getrlimit(Resource::Memlock).current, &uname().release().to_string_lossy());
    let mut checks = vec![rights(capabilities::missing(capabilities::TO_RUN), running)];
    checks.extend(namespaces());
    checks.extend([btf(), memlock, tracefs()]);
    if let Some(pid) = running {
        checks.extend(daemon(pid, places.socket()));
    } else {
        checks.push(Check::note("daemon", "not running: `orphand run` starts one"));
        checks.extend(programs());
    }
    checks.push(store(places.state_dir(), running));
    checks.push(socket_pairs(&pair()));
    checks
}

/// Whether the kernel says which process has the other end of a socket pair; tried with a pair of our own.
fn pair() -> io::Result<bool> {
    let (one, other) = UnixStream::pair()?;
    let (one, other) = (fstat(&one)?.st_ino, fstat(&other)?.st_ino);
    Ok(UnixSockets::here()?.find(one)?.is_some_and(|socket| socket.peer == Some(other)))
}

fn socket_pairs(tried: &io::Result<bool>) -> Check {
    const WITHOUT: &str = "servers on socket pairs (Node's SDK) are reported and spared; run `modprobe unix_diag` if the kernel has that module";
    let name = "socket pairs";
    let why = match tried {
        Ok(true) => return Check::ok(name, "the kernel says which process has the other end"),
        Ok(false) => "the kernel does not say which process has the other end".to_owned(),
        Err(error) => format!("cannot ask the kernel which process has the other end ({error})"),
    };
    Check::wrong(name, format!("{why}: {WITHOUT}"))
}

/// The rights of this process matter for a daemon that it would start; a running one has its own.
fn rights(missing: CapabilitySet, running: Option<u32>) -> Check {
    let name = "rights";
    let who = if geteuid().is_root() { "root" } else { "not root" };
    if missing.is_empty() {
        return Check::ok(name, format!("{who}, with all five capabilities"));
    }
    let missing = capabilities::names(missing);
    let found = format!("{who}, without {missing}: run orphand as root, or give it these capabilities");
    if running.is_some() { Check::note(name, found) } else { Check::wrong(name, found) }
}

fn namespaces() -> impl Iterator<Item = Check> {
    let judged = |one: &HostNamespace| of(one.name, one.require().map(|()| "the host's own".to_owned()));
    HOST_NAMESPACES.iter().map(judged)
}

fn btf() -> Check {
    let read = fs::read(BTF).map_err(|error| KernelError::no_btf(BTF, &error));
    let known = read.and_then(|btf| layout::read(&btf));
    of("BTF", known.map(|_| format!("{BTF} has all types that are needed")))
}

fn tracefs() -> Check {
    let name = "tracefs";
    if attach::has_tracefs() {
        return Check::ok(name, "mounted; only the tracepoint of setsid needs it");
    }
    let place = attach::TRACEFS;
    let look = fs::metadata(Path::new(place).join("events"));
    if look.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        return Check::note(name, format!("only root can look whether it is mounted at {place}"));
    }
    Check::note(
        name,
        format!(
            "not mounted at {place}: only the tracepoint of setsid needs it, and then the daemon mounts it; `--setsid none` works without it"
        ),
    )
}

fn memlock(limit: Option<u64>, kernel: &str) -> Check {
    let name = "RLIMIT_MEMLOCK";
    match limit {
        None => Check::ok(name, "unlimited"),
        Some(bytes) if attach::maps_count_as_locked(kernel) => Check::note(
            name,
            format!(
                "{bytes} bytes, and BPF maps count against it before Linux 5.11: the daemon raises it, which needs CAP_SYS_RESOURCE; or set LimitMEMLOCK=infinity in its unit"
            ),
        ),
        Some(bytes) => {
            Check::ok(name, format!("{bytes} bytes; BPF maps do not count against it since Linux 5.11"))
        }
    }
}

/// A running daemon proves that the programs load, and says how setsid is observed.
fn daemon(pid: u32, socket: &Path) -> Vec<Check> {
    let loaded = "kernel programs";
    let unknown = match Client::new(socket).within(PATIENCE).status(false) {
        Ok(status) if status.pid != pid => format!(
            "pid {pid} holds the lock, but pid {} answers at {}: give the right socket with --socket",
            status.pid,
            socket.display()
        ),
        Ok(status) => {
            let wrong = match (status.blind.as_slice(), &status.store_error) {
                ([], None) => None,
                ([], Some(why)) => Some(format!("keeps nothing: {why}")),
                (blind, _) => Some(format!("is blind: {}", blind.join("; "))),
            };
            let daemon = match wrong {
                None => Check::ok("daemon", format!("runs as pid {pid} and sees all")),
                Some(wrong) => Check::wrong("daemon", format!("runs as pid {pid} and {wrong}")),
            };
            let loaded = Check::ok(loaded, format!("loaded by the daemon: {}", hooks(&status.hooks)));
            let further = found_out(&status.hooks).chain(kernel_side(&status));
            return [daemon, loaded].into_iter().chain(further).collect();
        }
        Err(error) => format!("runs as pid {pid}, but its status is not known: {error}"),
    };
    let loaded = Check::note(loaded, "not loaded again while a daemon runs");
    vec![Check::note("daemon", unknown), loaded]
}

fn kernel_side(status: &Status) -> Option<Check> {
    errors(status).map(|errors| Check::note("kernel side", errors))
}

fn programs() -> Vec<Check> {
    let opened = KernelSource::open(&KernelOptions::default()).map(|source| source.hooks());
    // What was not loaded says nothing of what works here.
    let further: Vec<Check> = opened.iter().flat_map(|found| found_out(found)).collect();
    let loaded = of("kernel programs", opened.map(|found| format!("they load: {}", hooks(&found))));
    std::iter::once(loaded).chain(further).collect()
}

/// What a hook finds out, and what is done without it.
const FOUND_OUT: [(&str, &str, &str, &str); 3] = [
    (
        "who holds a wire",
        HOOK,
        "found out by the kernel, including descriptors in flight between processes",
        "found out from /proc, where descriptors in flight between processes are not seen",
    ),
    (
        "who sends a signal",
        SIGNAL_HOOK,
        "told by the kernel",
        "not known: what a signal ends was killed from an unknown sender",
    ),
    (
        "who calls a port",
        CALL_HOOK,
        "told by the kernel",
        "seen for a minute only, and not at all where another host has ended the call",
    ),
];

fn found_out(hooks: &[String]) -> impl Iterator<Item = Check> {
    FOUND_OUT.iter().map(|(name, hook, with, without)| {
        if hooks.iter().any(|one| one == hook) {
            return Check::ok(name, format!("{with} ({hook})"));
        }
        let why = format!("{hook} does not work here, and the log of `orphand run` says why");
        Check::note(name, format!("{without}: {why}"))
    })
}

/// The hooks by name, and the cost of the one on setsid.
fn hooks(hooks: &[String]) -> String {
    let setsid = match hooks.iter().find(|hook| hook.contains("setsid")) {
        None => "setsid is not hooked",
        Some(hook) if hook.starts_with("tracepoint:") => {
            "the one on setsid makes every system call of the host some 30 ns slower, `--setsid none` does without"
        }
        Some(_) => "the one on setsid costs nothing",
    };
    format!("{}; {setsid}", hooks.join(", "))
}

/// For the user of the running `daemon`. Without one, root checks for the owner of the store: the service is not root.
fn store(dir: &Path, daemon: Option<u32>) -> Check {
    let name = "state directory";
    let own = geteuid().as_raw();
    let user = match daemon {
        Some(pid) => identity::effective_user(pid),
        None if own == 0 => fs::metadata(dir).ok().map(|found| found.uid()),
        None => None,
    };
    let user = user.unwrap_or(own);
    match store::usable(dir, user) {
        // It is readable for its user alone, as it should be.
        Err(_) if user != own && is_refused(dir) => Check::note(
            name,
            format!(
                "only root or user {user}, whose daemon keeps its store there, can look at {}",
                dir.display()
            ),
        ),
        Err(error) => Check::wrong(name, error.to_string()),
        Ok(room) if room < ROOM => Check::note(
            name,
            format!(
                "{} has {} MB left on its disk, and the store may grow to {} MB: free some space",
                dir.display(),
                room / 1_000_000,
                ROOM / 1_000_000
            ),
        ),
        Ok(_) if user != own => Check::ok(
            name,
            format!("{} can be used by user {user}, whose daemon keeps its store there", dir.display()),
        ),
        Ok(_) => Check::ok(name, format!("{} can be used", dir.display())),
    }
}

fn is_refused(dir: &Path) -> bool {
    fs::read_dir(dir).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

pub(super) fn sight(seen: &Report) -> Check {
    match seen.blind.as_slice() {
        [] => Check::ok("sight", "all processes, and who holds their wires"),
        blind => Check::note("sight", format!("an absence of orphans proves nothing: {}", blind.join("; "))),
    }
}

fn of(name: &str, result: Result<String, KernelError>) -> Check {
    match result {
        Ok(found) => Check::ok(name, found),
        Err(error) => Check::wrong(name, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Health;

    #[test]
    fn missing_rights_are_named_and_matter_without_a_daemon() {
        let without = rights(CapabilitySet::BPF | CapabilitySet::KILL, None);
        assert_eq!(without.is, Health::Wrong);
        assert!(without.found.contains("without CAP_BPF, CAP_KILL: run orphand as root"));
        assert_eq!(rights(CapabilitySet::BPF, Some(1)).is, Health::Note);
        assert_eq!(rights(CapabilitySet::empty(), None).is, Health::Ok);
    }

    #[test]
    fn locked_memory_matters_on_old_kernels_only() {
        assert_eq!(memlock(None, "5.10.0").is, Health::Ok);
        assert_eq!(memlock(Some(65_536), "5.10.0-30-amd64").is, Health::Note);
        for kernel in ["5.11.0", "6.18.5+", "odd"] {
            assert_eq!(memlock(Some(65_536), kernel).is, Health::Ok, "{kernel}");
        }
    }

    #[test]
    fn what_the_hook_on_setsid_costs() {
        let told = |hook: &str| hooks(&["raw_tracepoint:sched_process_fork".to_owned(), hook.to_owned()]);
        assert!(told("fexit:ksys_setsid").ends_with("costs nothing"));
        assert!(told("tracepoint:syscalls:sys_exit_setsid").contains("30 ns"));
        assert!(hooks(&[]).contains("not hooked"));
    }

    #[test]
    fn what_a_hook_finds_out_is_told_and_what_is_done_without() {
        let all = [HOOK, SIGNAL_HOOK, CALL_HOOK].map(str::to_owned);
        assert!(found_out(&all).all(|check| check.is == Health::Ok));
        let without: Vec<Check> = found_out(&["raw_tracepoint:sched_process_fork".to_owned()]).collect();
        for (check, told) in without.iter().zip(["found out from /proc", "not known", "seen for a minute"]) {
            assert!(check.is == Health::Note && check.found.starts_with(told), "{check:?}");
        }
    }

    #[test]
    fn errors_of_the_kernel_side_are_told_and_only_then() {
        let with = |kind: &str, n| Status {
            kernel_errors: std::collections::BTreeMap::from([(kind.to_owned(), n)]),
            ..Status::default()
        };
        let told = kernel_side(&with("argv_fault", 3)).unwrap();
        assert!(told.is == Health::Note && told.found.contains("3 argv_fault"), "{told:?}");
        assert_eq!(kernel_side(&with("argv_fault", 0)), None);
    }

    #[test]
    fn a_directory_that_can_be_used_or_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(store(dir.path(), None).is, Health::Ok);
        let below = dir.path().join("a/b");
        assert_eq!(store(&below, None).is, Health::Ok, "it would be created");
        assert!(!below.exists() && !dir.path().join("a").exists(), "and was not");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let open = store(dir.path(), None);
        assert_eq!(open.is, Health::Wrong);
        assert!(open.found.contains("chmod 700"), "{}", open.found);
        fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(store(&dir.path().join("file"), None).is, Health::Wrong);
        assert_eq!(store(&dir.path().join("file/below"), None).is, Health::Wrong);
    }

    #[test]
    fn socket_pairs_can_be_looked_at_here() {
        assert_eq!(socket_pairs(&pair()).is, Health::Ok);
        for without in [Ok(false), Err(rustix::io::Errno::NOENT.into())] {
            let check = socket_pairs(&without);
            assert!(check.is == Health::Wrong && check.found.contains("modprobe unix_diag"), "{check:?}");
        }
    }

    #[test]
    fn what_could_not_be_seen_is_told() {
        let blind = Report { blind: vec!["not root".to_owned()], ..Report::default() };
        assert_eq!(sight(&blind).is, Health::Note);
        assert_eq!(sight(&Report::default()).is, Health::Ok);
    }
}

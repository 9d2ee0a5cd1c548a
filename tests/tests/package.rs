//! The Debian package in a system of its own: real dpkg, what it leaves where, and what it keeps and takes away.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use tempfile::tempdir;
use tests::{
    Layout, Manager,
    root::{Root, next_version, package},
    scene, within,
};

const CONFIG: &str = "/etc/orphand/config.toml";
const ENABLED: &str = "/etc/systemd/system/multi-user.target.wants/orphand.service";
const UNIT: &str = "/usr/lib/systemd/system/orphand.service";

/// Every file is where it belongs, is root's and only root can write it; the program runs; the user is there, is nobody, and may
/// not log in; the service is enabled, and nothing was started, as nothing manages services here. Manual pages, completions and
/// licences can be read.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn an_installation_is_whole() -> Result<()> {
    let root = Root::make()?;
    ensure!(!root.has("/usr/bin/orphand") && !root.has("/etc/orphand"), "the root is not clean");
    ensure!(!root.run(&["id", "orphand"])?.status.success(), "the user is there already");
    root.install(&package()?)?;

    let wrong = root.ok(&["dpkg", "--verify", "orphand"])?;
    ensure!(wrong.is_empty(), "{wrong}");
    let listed = root.ok(&["dpkg", "--listfiles", "orphand"])?;
    for file in listed.lines().filter(|file| *file != "/.") {
        let path = root.path(file);
        let executable = path.is_dir() || file == "/usr/bin/orphand" || file.contains("/examples/");
        let rights = root.rights(file)?;
        ensure!(
            rights == "0644 0:0" && path.is_file() || rights == "0755 0:0" && executable,
            "{file} is {rights}"
        );
    }
    for file in [
        UNIT,
        CONFIG,
        "/etc/orphand/conf.d/README",
        "/usr/lib/sysusers.d/orphand.conf",
        "/usr/share/zsh/vendor-completions/_orphand",
        "/usr/share/fish/vendor_completions.d/orphand.fish",
        "/usr/share/doc/orphand/README.md",
        "/usr/share/doc/orphand/docs/troubleshooting.md",
        "/usr/share/doc/orphand/docs/schema.json",
        "/usr/share/doc/orphand/changelog.gz",
        "/usr/share/doc/orphand/examples/leak/claude",
    ] {
        ensure!(listed.lines().any(|line| line == file), "there is no {file} in {listed}");
    }

    let version = root.ok(&["dpkg-query", "-f", "${Version}", "-W", "orphand"])?;
    let said = root.ok(&["orphand", "--version"])?;
    let said = said.trim().strip_prefix("orphand ").context("no version")?;
    ensure!(version.starts_with(said), "{said} is in the package of {version}");
    let checked = root.ok(&["orphand", "config", "check"])?;
    ensure!(checked == format!("{CONFIG}: valid\n"), "{checked}");
    let default = root.ok(&["orphand", "config", "default"])?;
    ensure!(root.read(CONFIG)? == default, "the configuration is not the default of this binary");

    for name in ["orphand", "orphand-hook"] {
        let user = root.ok(&["getent", "passwd", name])?;
        let fields: Vec<&str> = user.trim().split(':').collect();
        ensure!(fields[2].parse::<u32>()? < 1000 && fields[6].ends_with("/nologin"), "{user}");
        ensure!(root.ok(&["id", "-Gn", name])?.trim() == name, "{name} has other groups, too");
    }

    ensure!(root.has(ENABLED), "the service is not enabled");
    let unit = root.read(UNIT)?;
    ensure!(unit.contains("\nExecStart=/usr/bin/orphand run\n"), "it starts something else: {unit}");
    can_be_read(&root)
}

/// What a person finds: manual pages, completions, whose work it is.
fn can_be_read(root: &Root) -> Result<()> {
    for (page, section) in
        [("orphand", 1), ("orphand-run", 1), ("orphand-config-check", 1), ("orphand.toml", 5)]
    {
        let path = format!("/usr/share/man/man{section}/{page}.{section}.gz");
        // As man(1) reads it; a clean root has it, a machine need not.
        let text = root.ok(&["sh", "-c", &format!("gzip -dc {path}")])?;
        ensure!(text.contains(".SH NAME"), "{page}: {text}");
        if root.has("/usr/bin/man") {
            let found = root.ok(&["man", "-w", page])?;
            ensure!(found.trim() == path, "man finds {found} for {page}");
        }
    }
    // What bash does at the second Tab.
    let ask = "source /usr/share/bash-completion/completions/orphand; COMP_WORDS=(orphand conf); COMP_CWORD=1; \
               COMP_LINE='orphand conf' COMP_POINT=12; _clap_complete_orphand orphand conf orphand; echo ${COMPREPLY[@]}";
    let offered = root.ok(&["bash", "-c", ask])?;
    ensure!(offered.trim() == "config", "{offered:?} is offered for `orphand conf`");
    let zsh = root.read("/usr/share/zsh/vendor-completions/_orphand")?;
    ensure!(zsh.starts_with("#compdef orphand\n"), "zsh would not know what it is for");

    let notices = root.ok(&["sh", "-c", "gzip -dc /usr/share/doc/orphand/THIRD-PARTY.gz"])?;
    for named in
        ["SQLite", "\n- aya 0.", "\n- tokio 1.", "\n- aya-ebpf ", "LGPL-2.1-or-later", "Apache License"]
    {
        ensure!(notices.contains(named), "{named:?} is missing");
    }
    ensure!(!notices.contains("\n- proptest "), "what is only tested with is named");
    let copyright = root.read("/usr/share/doc/orphand/copyright")?;
    ensure!(copyright.contains("License: Expat or Apache-2.0"), "{copyright}");
    Ok(())
}

/// A changed configuration survives an upgrade, the new default lies beside it; an unchanged one becomes the new default.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn an_upgrade_keeps_what_was_changed() -> Result<()> {
    let (now, folder) = (package()?, tempdir()?);
    let next = next_version(&now, folder.path(), "# news\n")?;
    let changed = Root::make()?;
    changed.install(&now)?;
    let mine = changed.read(CONFIG)? + "grace = \"30s\"\n";
    changed.write(CONFIG, &mine)?;
    changed.write("/etc/orphand/conf.d/10-mine.toml", "observe = true\n")?;
    let output = changed.dpkg(&next, &["--force-confold"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(changed.read(CONFIG)? == mine, "the configuration was changed");
    ensure!(
        changed.read(&format!("{CONFIG}.dpkg-dist"))?.ends_with("# news\n"),
        "the new default is not there"
    );
    ensure!(
        changed.read("/etc/orphand/conf.d/10-mine.toml")? == "observe = true\n",
        "another file was changed"
    );
    ensure!(changed.has(ENABLED), "it is not enabled any more");

    let unchanged = Root::make()?;
    unchanged.install(&now)?;
    unchanged.install(&next)?;
    ensure!(unchanged.read(CONFIG)?.ends_with("# news\n"), "the old default is still there");
    let version = unchanged.ok(&["dpkg-query", "-f", "${Version}", "-W", "orphand"])?;
    ensure!(version.starts_with("1:"), "{version}");
    Ok(())
}

/// Removed: the program is gone, configuration and state stay. Purged: they are gone, too, and only the user stays. Installed
/// again it is as new.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_removal_keeps_and_a_purge_takes() -> Result<()> {
    let (root, package) = (Root::make()?, package()?);
    let before = traces(&root)?;
    root.install(&package)?;
    let uid = root.ok(&["id", "-u", "orphand"])?;
    root.write(CONFIG, "grace = \"30s\"\n")?;
    root.write("/etc/orphand/conf.d/10-mine.toml", "observe = true\n")?;
    root.write("/var/lib/orphand/orphand.db", "runs")?;
    root.ok(&["chown", "-R", "orphand:orphand", "/var/lib/orphand"])?;

    root.ok(&["dpkg", "--remove", "orphand"])?;
    for gone in ["/usr/bin/orphand", UNIT, "/usr/share/man/man1/orphand.1.gz", "/usr/share/doc/orphand"] {
        ensure!(!root.has(gone), "{gone} was left behind");
    }
    ensure!(root.read(CONFIG)? == "grace = \"30s\"\n", "the configuration was changed");
    for kept in ["/etc/orphand/conf.d/10-mine.toml", "/var/lib/orphand/orphand.db"] {
        ensure!(root.has(kept), "{kept} is gone");
    }

    root.ok(&["dpkg", "--purge", "orphand"])?;
    let after = traces(&root)?;
    let left: Vec<&str> = after.lines().filter(|trace| !before.lines().any(|was| was == *trace)).collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    ensure!(!root.has("/etc/orphand") && !root.has("/var/lib/orphand"), "left behind");
    ensure!(root.ok(&["id", "-u", "orphand"])? == uid, "the user's number can be somebody else's now");

    root.install(&package)?;
    ensure!(root.ok(&["id", "-u", "orphand"])? == uid, "another user");
    ensure!(root.has(ENABLED), "it is not enabled again");
    ensure!(root.ok(&["orphand", "config", "check"])? == format!("{CONFIG}: valid\n"), "not as new");
    ensure!(!root.has("/etc/orphand/conf.d/10-mine.toml"), "not as new");
    Ok(())
}

/// Whatever has the name, but for dpkg's own books.
fn traces(root: &Root) -> Result<String> {
    let find = "find /etc /usr /var /run -xdev -name '*orphand*' -not -path '/usr/src/*' -not -path '/var/cache/man/*' | sort";
    root.ok(&["sh", "-c", find])
}

/// Who has configured it before it was installed keeps what he wrote.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_configuration_that_was_there_first_is_kept() -> Result<()> {
    let (root, package) = (Root::make()?, package()?);
    root.write(CONFIG, "observe = true\n")?;
    root.write("/etc/orphand/conf.d/10-mine.toml", "grace = \"30s\"\n")?;
    root.write("/etc/orphand/hooks/tell", "#!/bin/sh\n")?;
    // Nobody is there to be asked, so nothing is decided.
    let output = root.dpkg(&package, &[])?;
    let asked = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success() && asked.contains("conffile prompt"), "{asked}");
    ensure!(root.read(CONFIG)? == "observe = true\n", "the configuration was changed");
    root.ok(&["dpkg", "--force-confold", "--configure", "orphand"])?;
    ensure!(root.read(CONFIG)? == "observe = true\n", "the configuration was changed");
    ensure!(root.has(&format!("{CONFIG}.dpkg-dist")), "the default is not there to compare");
    ensure!(
        root.read("/etc/orphand/conf.d/10-mine.toml")? == "grace = \"30s\"\n",
        "another file was changed"
    );
    ensure!(root.has("/etc/orphand/hooks/tell"), "another file is gone");
    root.ok(&["orphand", "config", "check"])?;
    Ok(())
}

/// Under a service manager it is started when it is installed, started anew when it is upgraded, stopped when it is removed; who has
/// switched it off is not overruled. (A stand-in runs: orphand itself refuses to be in a container.)
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn the_service_follows_the_package() -> Result<()> {
    scene(|s| {
        let now = s.folder().join("orphand_now.deb");
        fs::copy(package()?, &now).context("copy the package")?;
        let next = next_version(&now, s.folder(), "# news\n")?;
        let third = s.folder().join("third");
        fs::create_dir(&third)?;
        let third = next_version(&next, &third, "# more\n")?;
        let system = s.boot("packages", Layout::V2)?;
        let manager = system.manager();
        // Machines that are made from images of containers have one that forbids every start. And the index of the manual
        // pages would be made anew at each installation, which takes seconds.
        system.run(&["rm", "-f", "/usr/sbin/policy-rc.d", "/var/lib/man-db/auto-update"])?;
        let install = |package: &Path| {
            let package = package.to_string_lossy();
            let output = system.run(&["dpkg", "--install", &package])?;
            ensure!(output.status.success(), "dpkg: {}", String::from_utf8_lossy(&output.stderr));
            anyhow::Ok(())
        };
        manager.add("orphand.service.d/stand-in.conf", STAND_IN)?;

        install(&now)?;
        is(&manager, "active", "enabled")?;
        let first = manager.invocation("orphand.service")?;
        let user = manager.property("orphand.service", "User")?;
        ensure!(user == "orphand", "it runs as {user}");

        install(&next)?;
        is(&manager, "active", "enabled")?;
        ensure!(manager.invocation("orphand.service")? != first, "the old program runs on");

        manager.systemctl(&["disable", "--now", "orphand.service"])?;
        install(&third)?;
        is(&manager, "inactive", "disabled")?;

        manager.systemctl(&["enable", "--now", "orphand.service"])?;
        is(&manager, "active", "enabled")?;
        let main = manager.property("orphand.service", "MainPID")?;
        let output = system.run(&["dpkg", "--remove", "orphand"])?;
        ensure!(output.status.success(), "dpkg: {}", String::from_utf8_lossy(&output.stderr));
        ensure!(!system.path(&format!("/proc/{main}")).exists(), "it was left running");
        let output = system.run(&["dpkg", "--purge", "orphand"])?;
        ensure!(output.status.success(), "dpkg: {}", String::from_utf8_lossy(&output.stderr));
        let state = manager.property("orphand.service", "LoadState")?;
        ensure!(state == "not-found", "the unit is {state}");
        Ok(())
    })
}

/// Lives, whatever the unit asks of the kernel.
const STAND_IN: &str = "[Service]
Type=exec
ExecStart=
ExecStart=/bin/sleep infinity
WatchdogSec=0
";

/// Waits until the service is so.
fn is(manager: &Manager, active: &str, enabled: &str) -> Result<()> {
    let found = |name| manager.property("orphand.service", name).unwrap_or_default();
    within(&format!("the service is {active} and {enabled}"), || {
        (found("ActiveState") == active && found("UnitFileState") == enabled).then_some(())
    })
    .with_context(|| manager.status("orphand.service"))
}

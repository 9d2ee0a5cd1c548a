//! The configuration as the binary meets it: which files count, what is told about them, what root refuses.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::{orphand, output};

/// A folder of root's with these files in it.
fn folder(files: &[(&str, &str)]) -> Result<TempDir> {
    ensure!(rustix::process::geteuid().is_root(), "this test needs root: run `cargo xtask test` as root");
    let folder = tempfile::tempdir()?;
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().context("no parent")?)?;
        fs::write(path, text)?;
    }
    Ok(folder)
}

fn told(folder: &TempDir, args: &[&str]) -> Result<Output> {
    output(Command::new(orphand()?).args(args).current_dir(folder.path()))
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

/// It ended with `code`, and said these lines.
fn said(output: &Output, code: i32, out: &[&str], err: &[&str]) -> Result<()> {
    let (found_out, found_err) = (lines(&output.stdout), lines(&output.stderr));
    ensure!(output.status.code() == Some(code), "ended with {}: {found_err:?}", output.status);
    ensure!(found_out == out, "stdout: {found_out:#?}");
    ensure!(found_err == err, "stderr: {found_err:#?}");
    Ok(())
}

fn check(folder: &TempDir) -> Result<Output> {
    told(folder, &["config", "check", "config.toml"])
}

const AGENT: &str = "[[agent]]\nname = \"a\"\nprogram = \"a\"\n";

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn each_value_tells_its_file() -> Result<()> {
    let f = folder(&[
        ("config.toml", "grace = \"1s\"\nobserve = true\n"),
        ("conf.d/10-b.toml", "grace = \"3s\"\n[[agent]]\nname = \"b\"\nprogram = \"b\"\n"),
        ("conf.d/09-a.toml", &format!("grace = \"2s\"\n{AGENT}")),
    ])?;
    let valid = ["config.toml: valid", "conf.d/09-a.toml: valid", "conf.d/10-b.toml: valid"];
    said(&check(&f)?, 0, &valid, &[])?;
    let shown = told(&f, &["config", "show", "--config", "config.toml", "--origin"])?;
    let shown = lines(&shown.stdout);
    for line in [
        "grace = \"3s\"  # conf.d/10-b.toml:1",
        "observe = true  # config.toml:2",
        "work_grace = \"5m\"  # default",
        "[[agent]]  # conf.d/09-a.toml:2",
        "[[agent]]  # conf.d/10-b.toml:2",
    ] {
        ensure!(shown.iter().any(|s| s == line), "no {line:?} in {shown:#?}");
    }
    let shown = told(&f, &["config", "show", "--config", "config.toml", "--json"])?;
    let shown: Value = serde_json::from_slice(&shown.stdout)?;
    ensure!(
        shown["grace"] == "3s" && shown["agent"][0]["name"] == "a" && shown["agent"][1]["name"] == "b",
        "{shown}"
    );
    Ok(())
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn the_first_mistake_is_told_and_the_daemon_tells_the_same() -> Result<()> {
    let f = folder(&[
        ("config.toml", "graec = \"1s\"\n[[agent]]\nname = \"x\"\n"),
        ("conf.d/a.toml", AGENT),
        ("conf.d/b.toml", "log = [\n"),
    ])?;
    let mistake =
        "config.toml:1:1: unknown key \"graec\": did you mean \"grace\"? For example: grace = \"30s\"";
    said(&check(&f)?, 1, &[], &[mistake])?;
    let json = told(&f, &["config", "check", "config.toml", "--json"])?;
    ensure!(json.status.code() == Some(1) && json.stderr.is_empty(), "{json:?}");
    let json: Value = serde_json::from_slice(&json.stdout)?;
    ensure!(
        json["valid"] == false && json["config"].is_null() && json["notes"] == Value::Array(Vec::new()),
        "{json}"
    );
    let first = &json["errors"][0];
    ensure!(first["text"] == mistake && first["file"] == "config.toml", "{first}");
    ensure!(first["line"] == 1 && first["column"] == 1, "{first}");
    ensure!(first["near"] == "grace" && first["example"] == "grace = \"30s\"", "{first}");
    for verb in [["run", "--config", "config.toml"], ["ps", "--config", "config.toml"]] {
        said(&told(&f, &verb)?, 1, &[], &[&format!("orphand: {mistake}")])?;
    }
    // What cannot be read has no line.
    symlink("nowhere", f.path().join("conf.d/e.toml"))?;
    let unread = "cannot read the configuration conf.d/e.toml: it is behind a link that leads nowhere";
    said(&check(&f)?, 1, &[], &[&format!("orphand: {unread}")])?;
    let json = told(&f, &["config", "check", "config.toml", "--json"])?;
    let json: Value = serde_json::from_slice(&json.stdout)?;
    ensure!(json["errors"][0]["text"] == unread && json["errors"][0]["line"].is_null(), "{json}");
    Ok(())
}

/// Whatever others may write is refused by root, whether it would be read well or not.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn root_believes_no_file_that_others_may_write() -> Result<()> {
    let f = folder(&[("config.toml", ""), ("conf.d/a.toml", AGENT)])?;
    for (name, mode, before) in [("config.toml", 0o664, 0o644), ("conf.d", 0o1777, 0o755), ("", 0o777, 0o700)]
    {
        let place = f.path().join(name);
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
        let shown = place.display().to_string();
        let why =
            format!("others may write {} (mode {mode:04o}): chmod go-w it", shown.trim_end_matches('/'));
        for verb in [["config", "check", "config.toml"], ["run", "--config", "config.toml"]] {
            let refused = told(&f, &verb)?;
            let lines = lines(&refused.stderr);
            ensure!(refused.status.code() == Some(1) && lines.len() == 1, "{name} {mode:o}: {lines:?}");
            ensure!(
                lines[0].contains("cannot trust the configuration ") && lines[0].ends_with(&why),
                "{lines:?}"
            );
        }
        fs::set_permissions(&place, fs::Permissions::from_mode(before))?;
    }
    said(&check(&f)?, 0, &["config.toml: valid", "conf.d/a.toml: valid"], &[])
}

/// The command line as `nobody`, with these capabilities.
fn as_nobody(folder: &TempDir, caps: &str, args: &[&str]) -> Result<Output> {
    let binary = folder.path().join("orphand");
    if !binary.exists() {
        fs::copy(orphand()?, &binary)?;
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut command = Command::new("/usr/bin/setpriv");
    command.args(nobody).args([format!("--inh-caps={caps}"), format!("--ambient-caps={caps}")]);
    output(command.arg(&binary).args(args).current_dir(folder.path()))
}

/// Who has no rights but his own may read what he likes; the same user with capabilities may not.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn capabilities_count_as_root_does() -> Result<()> {
    let f = folder(&[("config.toml", "observe = true\n")])?;
    let config = f.path().join("config.toml");
    let args = ["config", "check", "config.toml"];
    fs::set_permissions(&config, fs::Permissions::from_mode(0o666))?;
    said(&as_nobody(&f, "-all", &args)?, 0, &["config.toml: valid"], &[])?;
    let why = format!(
        "orphand: cannot trust the configuration config.toml: others may write {} (mode 0666): chmod go-w it",
        config.display()
    );
    said(&as_nobody(&f, "+kill", &args)?, 1, &[], &[&why])?;
    // His own file is no other's.
    fs::set_permissions(&config, fs::Permissions::from_mode(0o644))?;
    chown(&config, Some(65534), None)?;
    said(&as_nobody(&f, "+kill", &args)?, 0, &["config.toml: valid"], &[])?;
    // What he may not read is told like anything else.
    chown(&config, Some(0), None)?;
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
    said(
        &as_nobody(&f, "-all", &args)?,
        1,
        &[],
        &["orphand: cannot read the configuration config.toml: Permission denied (os error 13)"],
    )
}

/// The default file need not be there, nor further ones; what is there counts.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn the_default_place() -> Result<()> {
    let f = folder(&[])?;
    let check = |prepare: &str| -> Result<Output> {
        let script =
            format!("mount -t tmpfs -o mode=755 none /etc && {{ {prepare}; }} && exec \"$0\" config check");
        let mut command = Command::new("/usr/bin/unshare");
        output(command.args(["--mount", "/bin/sh", "-c", &script]).arg(orphand()?).current_dir(f.path()))
    };
    let none = "there is no /etc/orphand/config.toml, nor conf.d/*.toml beside it: the defaults hold";
    said(&check("true")?, 0, &[none], &[])?;
    said(&check("mkdir -p /etc/orphand/conf.d")?, 0, &[none], &[])?;
    let further = "mkdir -p /etc/orphand/conf.d && echo 'grace = \"1s\"' > /etc/orphand/conf.d/a.toml";
    said(&check(further)?, 0, &["/etc/orphand/conf.d/a.toml: valid"], &[])?;
    let dangling = "mkdir -p /etc/orphand && ln -s nowhere /etc/orphand/config.toml";
    let told = "orphand: cannot read the configuration /etc/orphand/config.toml: it is behind a link that leads nowhere";
    said(&check(dangling)?, 1, &[], &[told])
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn what_is_printed_can_be_read() -> Result<()> {
    let f = folder(&[])?;
    let default = told(&f, &["config", "default"])?;
    fs::write(f.path().join("config.toml"), &default.stdout)?;
    said(&check(&f)?, 0, &["config.toml: valid"], &[])?;
    let null = ["config", "show", "--config", "/dev/null"];
    let shown = told(&f, &null)?;
    ensure!(
        told(&f, &["config", "show", "--config", "config.toml"])?.stdout == shown.stdout,
        "it is not the defaults"
    );
    fs::write(f.path().join("config.toml"), &shown.stdout)?;
    ensure!(
        told(&f, &["config", "show", "--config", "config.toml"])?.stdout == shown.stdout,
        "it is not the same"
    );
    fs::create_dir(f.path().join("man"))?;
    ensure!(told(&f, &["man", "--dir", "man"])?.status.success(), "no pages");
    let page = fs::read(f.path().join("man/orphand.toml.5"))?;
    ensure!(page == told(&f, &["man", "config"])?.stdout, "two pages");
    ensure!(Path::new(f.path()).join("man/orphand-config-default.1").exists(), "a verb without a page");
    Ok(())
}

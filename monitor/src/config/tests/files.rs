//! Which files are read, in which order, and which are refused.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use super::super::{files, *};

/// A directory with these files; a name that ends in `/` is a directory.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    folder
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The mistake without the path of the directory; nothing, if there is none.
fn wrong(folder: &tempfile::TempDir, guard: Option<u32>) -> String {
    let asked = folder.path().join("config.toml");
    let read = files::inputs(Some(&asked), guard).and_then(Loaded::of_inputs);
    let prefix = format!("{}/", folder.path().display());
    read.err().map(|mistake| mistake.to_string().replace(&prefix, "")).unwrap_or_default()
}

fn grace(folder: &tempfile::TempDir) -> Duration {
    Config::load(Some(&folder.path().join("config.toml"))).unwrap().grace
}

#[test]
fn an_asked_for_file_must_be_there_and_the_default_need_not() {
    let empty = folder(&[]);
    let none = "there is no configuration config.toml: `orphand config default` prints one to begin with";
    assert_eq!(wrong(&empty, None), none);
    let only_further = folder(&[("conf.d/a.toml", b"grace = \"1s\"")]);
    assert_eq!(wrong(&only_further, None), none);
    fs::write(only_further.path().join("config.toml"), "").unwrap();
    assert_eq!(grace(&only_further), Duration::from_secs(1));
    fs::remove_dir_all(only_further.path().join("conf.d")).unwrap();
    assert_eq!(grace(&only_further), Duration::from_secs(10));
}

#[test]
fn further_files_in_byte_order_and_only_those() {
    let folder = folder(&[
        ("config.toml", b"grace = \"1s\"\nfound = \"end\""),
        ("conf.d/10.toml", b"grace = \"3s\""),
        ("conf.d/9.toml", b"grace = \"4s\""),
        ("conf.d/B.toml", b"grace = \"5s\""),
        ("conf.d/a.toml", b"grace = \"6s\"\r\nobserve = true\r\n"),
        ("conf.d/z.toml~", b"no"),
        ("conf.d/z.TOML", b"no"),
        ("conf.d/.z.toml", b"no"),
        ("conf.d/.z.toml.swp", b"no"),
        ("conf.d/z.toml.dpkg-old", b"no"),
        ("conf.d/toml", b"no"),
        ("conf.d/empty.toml", b""),
        ("conf.d/zz/", b""),
    ]);
    let asked = folder.path().join("config.toml");
    let loaded = Loaded::read(Some(&asked)).unwrap();
    let names: Vec<_> =
        loaded.files.iter().map(|file| file.strip_prefix(folder.path()).unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "config.toml",
            "conf.d/10.toml",
            "conf.d/9.toml",
            "conf.d/B.toml",
            "conf.d/a.toml",
            "conf.d/empty.toml"
        ]
    );
    let config = &loaded.config;
    assert_eq!((config.grace, config.found, config.observe), (Duration::from_secs(6), Found::End, true));
    assert_eq!(loaded.origins.location("grace", 0).unwrap().file, folder.path().join("conf.d/a.toml"));
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let folder = folder(&[
        ("config.toml", b"grace = \"\xff\""),
        ("conf.d/a.toml/", b""),
        ("conf.d/b.toml", &vec![b'#'; 10 << 20]),
        ("conf.d/d.toml", b"graec = \"1s\""),
    ]);
    symlink("nowhere", folder.path().join("conf.d/c.toml")).unwrap();
    for (file, expected) in [
        ("config.toml", "cannot read the configuration config.toml: it is not UTF-8 text"),
        ("conf.d/a.toml", "cannot read the configuration conf.d/a.toml: Is a directory (os error 21)"),
        (
            "conf.d/b.toml",
            "cannot read the configuration conf.d/b.toml: it is larger than 1048576 bytes, more than it needs",
        ),
        (
            "conf.d/c.toml",
            "cannot read the configuration conf.d/c.toml: it is behind a link that leads nowhere",
        ),
        (
            "conf.d/d.toml",
            "conf.d/d.toml:1:1: unknown key \"graec\": did you mean \"grace\"? For example: grace = \"30s\"",
        ),
    ] {
        assert_eq!(wrong(&folder, None), expected);
        assert_eq!(wrong(&folder, Some(rustix::process::geteuid().as_raw())), expected);
        let file = folder.path().join(file);
        fs::remove_file(&file).or_else(|_| fs::remove_dir(&file)).unwrap();
        fs::write(folder.path().join("config.toml"), "").unwrap();
    }
    assert_eq!(wrong(&folder, None), "");
}

#[test]
fn what_is_no_file_keeps_nobody_waiting() {
    let folder = folder(&[("config.toml", b""), ("conf.d/", b"")]);
    let pipe = folder.path().join("conf.d/a.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let no_file = "cannot read the configuration conf.d/a.toml: it is not a regular file";
    assert_eq!(wrong(&folder, None), no_file);
    assert_eq!(wrong(&folder, Some(rustix::process::geteuid().as_raw())), no_file);
    fs::remove_file(&pipe).unwrap();
    symlink("/dev/zero", &pipe).unwrap();
    assert_eq!(wrong(&folder, None), no_file);
}

#[test]
fn no_configuration_at_all() {
    for guard in [None, Some(0)] {
        let null = Path::new("/dev/null");
        let read = files::inputs(Some(null), guard).and_then(Loaded::of_inputs);
        assert_eq!(read.unwrap().config, Config::default());
    }
}

#[test]
fn a_conf_d_that_is_no_directory() {
    let folder = folder(&[("config.toml", b""), ("conf.d", b"")]);
    assert_eq!(wrong(&folder, None), "cannot read the configuration conf.d: Not a directory (os error 20)");
    fs::remove_file(folder.path().join("conf.d")).unwrap();
    symlink("nowhere", folder.path().join("conf.d")).unwrap();
    assert_eq!(
        wrong(&folder, None),
        "cannot read the configuration conf.d: No such file or directory (os error 2)"
    );
}

#[test]
fn a_mark_of_the_byte_order_is_no_text() {
    let marked = folder(&[("config.toml", b"\xef\xbb\xbfgrace = \"2s\"")]);
    assert_eq!(grace(&marked), Duration::from_secs(2));
    let wrong_key = folder(&[("config.toml", b"\xef\xbb\xbf  x = 1")]);
    assert!(wrong(&wrong_key, None).starts_with("config.toml:1:3: unknown key \"x\""));
}

#[test]
fn with_rights_what_others_may_write_is_refused() {
    let folder =
        folder(&[("config.toml", b"graec = 1"), ("conf.d/a.toml", b"grace = 1"), ("conf.d/b.toml", b"")]);
    let own = Some(rustix::process::geteuid().as_raw());
    let [config, directory, a] =
        ["config.toml", "conf.d", "conf.d/a.toml"].map(|name| folder.path().join(name));
    let content = wrong(&folder, own);
    assert!(content.starts_with("config.toml:1:1: unknown key"), "{content}");
    mode(&a, 0o646);
    assert_eq!(wrong(&folder, None), content);
    let refused = wrong(&folder, own);
    assert!(refused.ends_with("others may write conf.d/a.toml (mode 0646): chmod go-w it"), "{refused}");
    mode(&config, 0o664);
    assert_eq!(
        wrong(&folder, own),
        "cannot trust the configuration config.toml: others may write config.toml (mode 0664): chmod go-w it"
    );
    mode(&config, 0o644);
    mode(&a, 0o644);
    mode(&directory, 0o775);
    assert_eq!(
        wrong(&folder, own),
        "cannot trust the configuration conf.d: others may write conf.d (mode 0775): chmod go-w it"
    );
    // A user who can add files need not be able to change the existing ones.
    mode(&directory, 0o1777);
    assert!(wrong(&folder, own).contains("conf.d (mode 1777)"));
    fs::remove_file(&a).unwrap();
    fs::remove_file(directory.join("b.toml")).unwrap();
    assert!(wrong(&folder, own).contains("conf.d (mode 1777)"), "also when it is empty");
}

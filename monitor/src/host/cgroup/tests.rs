use proptest::prelude::*;

use super::*;

/// Manager and name of the unit, on a host with the unified hierarchy.
fn at(path: &str) -> Option<(String, String)> {
    Lodging::parse(&format!("0::{path}\n")).map(|found| (found.unit.manager, found.unit.name))
}

#[track_caller]
fn is(path: &str, manager: &str, name: &str) {
    assert_eq!(at(path), Some((manager.to_owned(), name.to_owned())), "{path}");
}

#[track_caller]
fn is_none(path: &str) {
    assert_eq!(at(path), None, "{path}");
}

#[test]
fn services_of_the_host() {
    is("/system.slice/untether.service", "", "untether.service");
    is("/system.slice/system-getty.slice/getty@tty1.service", "", "getty@tty1.service");
    is("/system.slice/my\\x2dbot.service", "", "my\\x2dbot.service");
    is("/bot.service", "", "bot.service");
    // systemd escapes names that the kernel has for itself.
    is("/system.slice/_cgroup.service", "", "cgroup.service");
    is("/system.slice/__x.service", "", "_x.service");
    is("/system.slice/bot.service (deleted)", "", "bot.service");
}

#[test]
fn what_a_service_made_for_itself_belongs_to_it() {
    is("/system.slice/bot.service/worker/3", "", "bot.service");
    is("/system.slice/bot.service/worker.service", "", "bot.service");
    is("/system.slice/containerd.service/abc/x.mount", "", "containerd.service");
}

#[test]
fn managers_below_managers() {
    let user = "/user.slice/user-1000.slice/user@1000.service";
    is(&format!("{user}/app.slice/foo.service"), user, "foo.service");
    is(&format!("{user}/app.slice/app-dbus.slice/foo@a.service/sub"), user, "foo@a.service");
    is(&format!("{user}/foo.service"), user, "foo.service");
    is(user, "", "user@1000.service");
    is("/system.slice/bot@1.service/foo.service", "", "bot@1.service");
    let nspawn = "/machine.slice/systemd-nspawn@web.service/payload";
    is(&format!("{nspawn}/system.slice/x.service"), nspawn, "x.service");
    is(nspawn, "", "systemd-nspawn@web.service");
    let podman = "/machine.slice/libpod-0a1b.scope/container";
    is(&format!("{podman}/system.slice/x.service"), podman, "x.service");
    let docker = "/system.slice/docker-0a1b.scope";
    let inner = format!("{docker}{user}");
    is(&format!("{docker}/system.slice/x.service"), docker, "x.service");
    is(&format!("{inner}/app.slice/foo.service"), &inner, "foo.service");
}

#[test]
fn managers_below_other_groups() {
    is("/docker/0a1b/system.slice/x.service", "/docker/0a1b", "x.service");
    is("/lab-a/system.slice/x.service", "/lab-a", "x.service");
    is("/lab-a/x.service", "/lab-a", "x.service");
    is("/lab-u/app.slice/x.service", "/lab-u", "x.service");
    is("/kubepods/burstable/pod1/0a1b/system.slice/x.service", "/kubepods/burstable/pod1/0a1b", "x.service");
}

#[test]
fn what_is_no_service() {
    is_none("/");
    is_none("");
    is_none("/init.scope");
    is_none("/docker/0a1b");
    is_none("/docker/0a1b/init.scope");
    is_none("/user.slice/user-1000.slice/session-3.scope");
    is_none("/user.slice/user-1000.slice/user@1000.service/init.scope");
    is_none("/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope");
    is_none("/user.slice/user-1000.slice/user@1000.service/app.slice");
    is_none("/system.slice/dev-hugepages.mount");
    is_none("/system.slice/session-1.scope/x.service");
    is_none("/system.slice/not a unit.service");
    is_none("/system.slice/template@.service");
    is_none("/system.slice/@x.service");
    is_none("/system.slice/.service");
    is_none("/system.slice/somebodys/x.service");
    is_none("system.slice/x.service");
}

#[test]
fn units_of_all_kinds_and_those_around_them() {
    let all = |cgroup: &str| {
        let all = Lodging::all(cgroup).into_iter();
        all.map(|one| format!("{}:{}", one.unit.manager, one.unit.name)).collect::<Vec<_>>()
    };
    let at = |path: &str| all(&format!("0::{path}\n"));
    assert_eq!(at("/system.slice/x.service/made/y.service"), [":x.service"]);
    assert_eq!(at("/user.slice/user-7.slice/session-3.scope"), [":session-3.scope"]);
    let user = "/user.slice/user-7.slice/user@7.service";
    let tab = [":user@7.service".to_owned(), format!("{user}:tab.scope")];
    assert_eq!(at(&format!("{user}/app.slice/tab.scope")), tab);
    // Before version 247.
    assert_eq!(at(&format!("{user}/x.service")), [":user@7.service".to_owned(), format!("{user}:x.service")]);
    let inner = "/machine.slice/libpod-0a1b.scope";
    let expected = [":libpod-0a1b.scope".to_owned(), format!("{inner}:x.service")];
    assert_eq!(at(&format!("{inner}/system.slice/x.service")), expected);
    for none in ["/", "", "/docker/0a1b/init.scope", "/system.slice", "system.slice/x.service"] {
        assert_eq!(at(none), [] as [&str; 0], "{none}");
    }
    assert_eq!(all("1:name=systemd:/system.slice/x.service\n0::/system.slice/x.service\n"), [":x.service"]);
    let box_in =
        "1:name=systemd:/system.slice/box.service\n0::/system.slice/box.service/user.slice/s.scope\n";
    assert_eq!(all(box_in), [":box.service", "/system.slice/box.service:s.scope"]);
}

#[test]
fn hybrid_and_first_version() {
    let name =
        |cgroup| Lodging::parse(cgroup).map(|found| format!("{}:{}", found.unit.manager, found.unit.name));
    let hybrid = "9:name=systemd:/system.slice/x.service\n4:memory:/elsewhere.slice/m.service\n0::/system.slice/x.service\n";
    assert_eq!(name(hybrid).unwrap(), ":x.service");
    // The first version alone, and a group of the resource controllers that says nothing.
    let first = "4:memory:/system.slice/m.service\n1:name=systemd:/system.slice/x.service\n";
    assert_eq!(name(first).unwrap(), ":x.service");
    assert_eq!(name("4:memory:/system.slice/m.service\n"), None);
    // A container with the unified hierarchy on a hybrid host.
    let inner = "1:name=systemd:/lab-a\n0::/lab-a/system.slice/x.service\n";
    assert_eq!(name(inner).unwrap(), "/lab-a:x.service");
    let inner =
        "1:name=systemd:/system.slice/box.service\n0::/system.slice/box.service/system.slice/x.service\n";
    assert_eq!(name(inner).unwrap(), "/system.slice/box.service:x.service");
    // The unified hierarchy is not systemd's here: it names something else.
    let odd = "1:name=systemd:/system.slice/x.service\n0::/system.slice/y.service\n";
    assert_eq!(name(odd).unwrap(), ":x.service");
    let colons = "1:name=systemd:/system.slice/a:b.service\n";
    assert_eq!(name(colons).unwrap(), ":a:b.service");
}

#[test]
fn the_manager_is_where_its_scope_is() {
    let of = |path: &str| Lodging::parse(&format!("0::{path}\n")).unwrap();
    let host = of("/system.slice/x.service");
    assert!(host.is_managed_from("0::/init.scope\n"));
    assert!(!host.is_managed_from("0::/\n"));
    assert!(!host.is_managed_from("0::/lab-a/init.scope\n"));
    assert!(!host.is_managed_from("1:name=systemd:/init.scope\n"));
    let inner = of("/lab-a/system.slice/x.service");
    assert!(inner.is_managed_from("0::/lab-a/init.scope\n"));
    assert!(!inner.is_managed_from("0::/init.scope\n"));
    assert!(!inner.is_managed_from("0::/lab-ab/init.scope\n"));
    assert!(!inner.is_managed_from("0::/lab-a/init.scope/x\n"));
    assert!(!inner.is_managed_from(""));
}

proptest! {
    #[test]
    fn any_text_ends(text in any::<String>()) {
        drop(Lodging::parse(&text));
        drop(Lodging::parse(&format!("0::/{text}")));
    }

    #[test]
    fn a_path_of_likely_parts_names_a_unit_on_it(
        parts in proptest::collection::vec(
            prop_oneof!["[a-c]{1,2}\\.slice", "[a-c]{1,2}\\.service", "[a-c]{1,2}\\.scope", "_?[a-c]{1,2}", "user@1\\.service", ""],
            0..8,
        )
    ) {
        let path = format!("/{}", parts.join("/"));
        if let Some((manager, name)) = at(&path) {
            prop_assert!(path.starts_with(&manager) && name.ends_with(".service"));
            prop_assert!(parts.iter().any(|part| part.trim_start_matches('_') == name));
            // Looked at from inside, the same unit is the manager's own.
            let inside = path.strip_prefix(&manager).unwrap();
            prop_assert_eq!(at(inside), Some((String::new(), name)));
        }
    }
}

#[test]
fn groups_that_have_no_known_owner() {
    for line in ["", "0::/no/such/group", "4:memory:/no/such/group", "4:nothing:", "x", "1:y"] {
        assert_eq!(owner_of_group(line), None, "{line}");
    }
}

#[test]
fn groups_that_cannot_be_read() {
    for text in ["", "0::/no/such/group", "4:memory:/no/such/group", "x"] {
        assert_eq!(memory_of(text), None, "{text}");
    }
}

#[test]
fn only_a_group_of_version_1_that_is_not_thawed_is_frozen() {
    for text in ["0::/box", "7:freezer:/\n0::/box", "7:cpu:/box", ""] {
        assert!(!is_frozen(text), "{text}");
    }
    // Its state cannot be read.
    for text in ["7:freezer:/no/such/box", "3:cpu,freezer:/no/such/box\n0::/"] {
        assert!(is_frozen(text), "{text}");
    }
}

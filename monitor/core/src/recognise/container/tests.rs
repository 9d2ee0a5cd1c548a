//! Command lines of container clients, and what they tell of the container.

use super::*;

fn client(line: &str) -> Option<Container> {
    let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let exe = format!("/usr/bin/{}", argv[0]);
    container_client(&Image { exe, argv, argv_truncated: false })
}

fn command(line: &str) -> Option<String> {
    client(line).map(|container| container.command)
}

#[test]
fn clients_and_what_a_person_can_run() {
    for (line, expected) in [
        ("docker run -i --rm mcp/fetch", "docker ps --filter ancestor=mcp/fetch"),
        ("docker run -i --rm --name box -e A=1 mcp/fetch --x", "docker stop box"),
        ("docker run -i --name=box localhost:5000/x:1@sha256:ab", "docker stop box"),
        ("docker --context c container run -i img", "docker ps --filter ancestor=img"),
        ("podman run -i --rm docker.io/mcp/time", "podman ps --filter ancestor=docker.io/mcp/time"),
        ("podman --remote run -i mcp/time", "podman ps"),
        ("nerdctl run -i mcp/time", "nerdctl ps --filter ancestor=mcp/time"),
        ("docker exec -i box mcp-server-foo", "docker top box"),
        ("docker exec -i -w /app box node x.js", "docker top box"),
        ("docker attach --detach-keys x box", "docker top box"),
        ("docker start -ai box", "docker stop box"),
        ("docker start -a box", "docker stop box"),
        ("docker start -ai box other", "docker stop box"),
        ("docker compose -f a.yml run --rm svc", "docker ps"),
        ("docker-compose compose run svc", "docker ps"),
        ("docker compose run -T --rm svc", "docker ps"),
        ("docker-compose run -T svc", "docker ps"),
        ("python3 /usr/bin/docker-compose -f a.yml run -T svc", "docker ps"),
        ("python3.11 -I /usr/bin/podman-compose run -T svc", "podman ps"),
        ("podman-compose run -T svc", "podman ps"),
        ("podman compose run -T svc", "podman ps"),
        ("docker run -i --name $(reboot) ;reboot", "docker ps"),
    ] {
        assert_eq!(command(line).as_deref(), Some(expected), "{line}");
    }
    let known = client("docker run -i --rm --name box mcp/fetch").unwrap();
    assert_eq!((known.name.as_deref(), known.image.as_deref()), (Some("box"), Some("mcp/fetch")));
}

#[test]
fn a_container_that_was_made_before() {
    let id = "0a".repeat(32);
    let started = |line: &str| {
        let argv = line.split(' ').map(str::to_owned).collect();
        let image = Image { exe: "/usr/bin/docker".to_owned(), argv, argv_truncated: false };
        started_container(&image)
    };
    for line in ["docker start --attach --interactive ID", "docker --host h container start -ai ID"] {
        let known = started(&line.replace("ID", &id)).unwrap();
        assert_eq!((known.id.as_ref(), known.name), (Some(&id), None), "{line}");
        assert_eq!(known.command, "docker stop 0a0a0a0a0a0a");
    }
    let guest = client(&format!("docker exec -i {id} sh")).unwrap();
    assert_eq!((guest.id.as_ref(), guest.name), (Some(&id), None));
    assert_eq!(guest.command, "docker top 0a0a0a0a0a0a");
    // No standard input; a name; a part of an id; two containers; containers that were started before.
    for line in [
        "docker start --attach ID",
        "docker start -ai box",
        "docker start -ai 0a0a0a0a0a0a",
        "docker start -i ID ID",
        "docker start -i",
        "docker attach ID",
        "docker exec -i ID sh",
    ] {
        assert_eq!(started(&line.replace("ID", &id)), None, "{line}");
    }
}

#[test]
fn what_works_through_another_client() {
    let through = |line: &str| {
        let argv = line.split(' ').map(str::to_owned).collect();
        works_through_client(&Image { exe: "/usr/bin/python3.11".to_owned(), argv, argv_truncated: false })
    };
    assert!(through("/usr/bin/python3 /usr/bin/docker-compose -f a.yml run --rm -T svc"));
    assert!(through("python3 /usr/bin/podman-compose run -T svc"));
    for line in [
        "python3 /usr/bin/docker-compose exec -T svc sh",
        "docker run -i img",
        "docker compose run svc",
        "python3 run.py docker-compose run",
    ] {
        assert!(!through(line), "{line}");
    }
}

#[test]
fn what_is_handed_on_in_a_variable() {
    let of = |line: &str| {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        handed_on_by_client(&Image { exe: argv[0].clone(), argv, argv_truncated: false }, "S")
    };
    let a = || Some("a".to_owned());
    for line in [
        "docker run -i -e S=a img",
        "docker run --rm -ie S=a img",
        "docker run -eS=a -i img",
        "docker run -i --env=S=a -e T=b img",
        "docker --context c container run -i --env S=a img -e S=c",
        "podman exec -i -e S=a box server",
    ] {
        assert_eq!(of(line), [a()], "{line}");
    }
    assert_eq!(of("docker run -i -e S img"), [None]);
    assert_eq!(of("docker run -i -e S=a -e S img"), [a(), None]);
    assert_eq!(of("docker run -i -e S=a=b img"), [Some("a=b".to_owned())]);
    for line in [
        "docker run -i img -e S=a",
        "docker run -i --label -e -v S=a img",
        "docker run -i -e SS=a img",
        "docker run -i -e s=a img",
        "docker start -e S=a box",
        "node run -e S=a img",
    ] {
        assert_eq!(of(line), [], "{line}");
    }
}

#[test]
fn other_commands_and_programs() {
    for line in [
        "docker build -t mcp/foo .",
        "docker pull mcp/foo",
        "docker logs -f box",
        "docker mcp gateway run",
        "docker",
        "dockerd run",
        "docker-compose ps",
        "python3 podman-compose ps",
        "python3 run.py docker-compose run svc",
        "node /usr/bin/docker-compose run svc",
        "node docker.js run",
        "grep docker run",
    ] {
        assert_eq!(client(line), None, "{line}");
    }
}

#[test]
fn what_works_for_podman_itself() {
    let works = |line: &str| {
        let argv = line.split(' ').map(str::to_owned).collect();
        works_for_podman(&Image { exe: "/usr/bin/podman".to_owned(), argv, argv_truncated: false })
    };
    assert!(works("/usr/bin/podman --log-level=info system service"));
    assert!(works("/usr/bin/podman --root /x --runtime runc container cleanup --rm 0a0a"));
    for line in ["podman run -i service", "podman exec -i box cleanup", "docker system service", "podman"] {
        assert!(!works(line), "{line}");
    }
}

#[test]
fn a_name_or_a_file_tells_the_client() {
    let image = |exe: &str, argv: &[&str], argv_truncated| Image {
        exe: exe.to_owned(),
        argv: argv.iter().map(ToString::to_string).collect(),
        argv_truncated,
    };
    assert!(container_client(&image("/usr/bin/docker", &["mcp", "run", "-i", "x"], false)).is_some());
    assert!(container_client(&image("/opt/docker (deleted)", &["x", "run", "x"], false)).is_some());
    assert!(container_client(&image("/usr/bin/docker", &["docker"], true)).is_some());
    assert!(container_client(&image("", &[], false)).is_none());
}

//! A manager lives on and says that it is done with a server: with the lines that the documentation shows, and with the
//! command.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tests::{
    Actor, Daemon, Launch, Part, Scene, as_user,
    neighbours::{HONEST, HOSTILE},
    orphand, output, scene, told,
};

const PAGE: &str = include_str!("../../docs/living-owners.md");

/// The user of the manager and its servers.
const USER: u32 = HONEST;

/// The lines in this language that the page shows.
fn shown(language: &str) -> Result<&'static str> {
    let lines = PAGE.split_once(&format!("```{language}\n")).and_then(|(_, rest)| rest.split_once("```"));
    Ok(lines.with_context(|| format!("the page shows no {language}"))?.0)
}

/// The answer to a user who runs the lines of the page.
fn says(daemon: &Daemon, uid: u32, language: &str, server: &Actor) -> Result<Value> {
    let lines = shown(language)?;
    let mut command = match language {
        "python" => {
            let mut command = as_user(uid, "/usr/bin/python3");
            command.arg("-c").arg(format!(
                "{lines}\nimport sys\nprint(json.dumps(release(int(sys.argv[1]), sys.argv[2])))"
            ));
            command
        }
        "js" => {
            let mut command = as_user(uid, "node");
            command.args(["--input-type=module", "-e"]).arg(format!(
                "{lines}\nconsole.log(JSON.stringify(await release(process.argv[1], process.argv[2])))"
            ));
            command
        }
        other => bail!("{other}?"),
    };
    let told = output(command.arg(server.id.pid.to_string()).arg(daemon.socket()))?;
    serde_json::from_slice(&told.stdout).with_context(|| String::from_utf8_lossy(&told.stderr).into_owned())
}

/// The exit code of `orphand release` for a user, what it printed, and what it said on standard error.
fn verb(daemon: &Daemon, uid: u32, args: &[&str]) -> Result<(i32, String, String)> {
    told(as_user(uid, orphand()?).arg("release").args(args).arg("--socket").arg(daemon.socket()))
}

/// A daemon, and a manager of the user with servers of these names. It keeps their wires.
struct Stage {
    daemon: std::rc::Rc<Daemon>,
    manager: Actor,
    servers: Vec<Actor>,
}

impl Stage {
    fn set(s: &Scene, names: &[&str]) -> Result<Self> {
        let config = "abandoned_grace = \"2s\"\n".to_owned();
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let login = s.start(&Part::new("login", "login"))?;
        let manager = login.start(&Part::agent("manager").uid(USER))?;
        let start = |name: &&str| {
            let server = manager.start(&Part::server(*name).how("job"))?;
            server.act("answer")?;
            daemon.wait_for("server_started", server.id)?;
            Ok(server)
        };
        let servers = names.iter().map(start).collect::<Result<_>>()?;
        Ok(Self { daemon, manager, servers })
    }

    /// The server was judged because it was released, and was ended; its manager lives.
    fn ended(&self, server: &Actor) -> Result<()> {
        let detected = self.daemon.wait_for("orphan_detected", server.id)?;
        ensure!(detected.list("evidence") == ["released"], "{}", detected.line);
        self.daemon.wait_for("orphan_reaped", server.id)?;
        server.id.wait_gone()?;
        ensure!(self.manager.id.alive(), "the manager is dead");
        Ok(())
    }
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_released_server_is_ended_though_its_manager_lives() -> Result<()> {
    scene(|s| {
        let stage = Stage::set(s, &["python", "js", "typed", "kept"])?;
        let [python, js, typed, kept] = &stage.servers[..] else { bail!("not four servers") };
        for (language, server) in [("python", python), ("js", js)] {
            let answer = says(&stage.daemon, USER, language, server)?;
            ensure!(answer.pointer("/released/0/state") == Some(&json!("suspect")), "{answer}");
        }
        let pid = typed.id.pid.to_string();
        let (code, out, error) = verb(&stage.daemon, USER, &[&pid, "--json"])?;
        ensure!(code == 0 && out.contains("\"released\": true"), "ended with {code}: {out}{error}");
        let manager = stage.manager.id.pid.to_string();
        let (code, out, error) = verb(&stage.daemon, USER, &[&manager])?;
        ensure!(code == 4 && out.is_empty() && error.lines().count() == 1, "ended with {code}: {out}{error}");
        for server in [python, js, typed] {
            stage.ended(server)?;
        }
        s.barrier(&stage.daemon)?;
        stage.daemon.silent(&[kept.id])
    })
}

/// Another user is refused whatever he asks, and the server lives. Root may.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn another_user_is_refused() -> Result<()> {
    scene(|s| {
        let stage = Stage::set(s, &["kept", "released"])?;
        let [kept, released] = &stage.servers[..] else { bail!("not two servers") };
        let answer = says(&stage.daemon, HOSTILE, "python", kept)?;
        let told = answer["error"].as_str().unwrap_or_default();
        ensure!(told.starts_with("refused: server ") && told.contains("user 64001"), "{answer}");
        let both = [kept, released].map(|server| server.id.pid.to_string());
        let (code, out, error) = verb(&stage.daemon, HOSTILE, &[&both[0], &both[1]])?;
        ensure!(code == 1 && out.is_empty() && error.lines().count() == 1, "ended with {code}: {out}{error}");
        ensure!(error.contains("refused: server "), "{error}");
        let (code, _, error) = verb(&stage.daemon, 0, &[&both[1]])?;
        ensure!(code == 0, "ended with {code}: {error}");
        stage.ended(released)?;
        s.barrier(&stage.daemon)?;
        stage.daemon.silent(&[kept.id])
    })
}

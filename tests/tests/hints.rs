//! By what a person recognises agents and servers: the name in the settings, folder, session, terminal.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{Identity, Launch, Part, scene, within};

const SESSION: &str = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

/// They are in `ps`, `explain`, events and `history`, also after the end; an entry of the settings with other arguments
/// names nothing.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_person_recognises_servers_and_agents() -> Result<()> {
    scene(|s| {
        let project = s.folder().join("shop");
        fs::create_dir(&project)?;
        let program = s.program("mcp-server-notes", false)?;
        let entry = |argument: &str| json!({ "command": program, "args": ["--as", argument] });
        let settings = json!({ "mcpServers": { "notes": entry("a"), "other": entry("z") } });
        fs::write(project.join(".mcp.json"), settings.to_string())?;
        let daemon = s.daemon_with(&Launch { grace: "1s", ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let start = |argument: &str| -> Result<Identity> {
            let argv = json!([program, "--as", argument]);
            let env = json!({ "CLAUDE_CODE_SESSION_ID": SESSION });
            let directory = project.to_string_lossy();
            let order =
                json!({ "do": "start", "argv": argv, "wire": "pipe", "directory": directory, "env": env });
            let pid = agent.send_order(&order)?.get("pid").and_then(Value::as_u64).context("no pid")?;
            Identity::of(u32::try_from(pid)?).context("the server has ended")
        };
        let [named, unnamed] = [start("a")?, start("b")?];
        let begun = daemon.wait("the agent", |event| event.is_agent("agent_started", agent.id))?;
        ensure!(begun["agent"]["cwd"].is_string() && begun["agent"]["session"].is_null(), "{}", begun.line);
        ensure!(begun["agent"]["started"].is_string(), "{}", begun.line);
        for server in [named, unnamed] {
            daemon.wait_for("server_started", server)?;
        }
        // What nothing depends on is found a little later.
        let list = within("the names", || {
            let list: Value = serde_json::from_str(&daemon.says(&["ps", "--json"]).ok()?.1).ok()?;
            (list.to_string().matches("/shop").count() >= 2).then_some(list)
        })?;
        let servers = list.pointer("/agents/0/servers").and_then(Value::as_array).context("no servers")?;
        let name = |server: Identity| {
            let is_it =
                |one: &&Value| one.pointer("/server/processes/0").is_some_and(|first| server == *first);
            servers.iter().find(is_it).map(|one| one["server"]["configured_name"].clone())
        };
        ensure!(name(named) == Some(json!("notes")) && name(unnamed) == Some(Value::Null), "{list}");
        ensure!(list.pointer("/agents/0/agent/session") == Some(&json!(SESSION)), "{list}");
        let (_, wide) = daemon.says(&["ps", "-o", "wide"])?;
        ensure!(wide.contains("notes") && wide.contains(SESSION), "{wide}");
        let explained = daemon.says(&["explain", &named.pid.to_string()])?.1.replace('\n', " ");
        ensure!(explained.contains("call it \"notes\""), "{explained}");
        let (_, report) = daemon.says(&["explain", &named.pid.to_string(), "--report"])?;
        ensure!(!report.contains("/shop") && !report.contains(SESSION), "what is private is in {report}");
        agent.kill()?;
        let detected = daemon.wait_for("orphan_detected", named)?;
        ensure!(detected["server"]["configured_name"] == "notes", "{}", detected.line);
        ensure!(detected["owner"]["session"] == SESSION && detected["next"] == "ended", "{}", detected.line);
        daemon.reaped(&[named])?;
        daemon.reaped(&[unnamed])?;
        let (_, past) = daemon.says(&["history"])?;
        ensure!(past.contains("(notes)") && past.contains(SESSION), "{past}");
        Ok(())
    })
}

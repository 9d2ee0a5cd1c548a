//! Rules of the configuration.

use super::{check_with, image};
use crate::{
    model::Unit,
    recognise::{Role, Rules},
};

fn rules(text: &str) -> Rules {
    Rules::from_source(text).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn each_key_looks_at_its_place() {
    let book = r#"
        [[program]]
        kind = "server"
        name = "weather"
        program = "*/weather/server.py"
        [[program]]
        kind = "server"
        name = "pkg"
        program = "@me/*"
        [[program]]
        kind = "server"
        name = "mod"
        program = "me.tools"
        [[program]]
        kind = "server"
        name = "binary"
        program = "/opt/tools/*/bin/*"
        [[program]]
        kind = "server"
        name = "kb"
        program = "kb mcp"
        [[agent]]
        name = "bot"
        program = "my-?ot"
        [[agent]]
        name = "gateway"
        program = "/srv/gw/main.js run"
    "#;
    check_with(
        &rules(book),
        "
        python3 /home/u/weather/server.py => server weather by weather
        uv run /home/u/weather/server.py => server weather by weather
        vim /home/u/weather/server.py => other vim
        python3 app.py /home/u/weather/server.py => other app.py
        npx -y @me/thing@1.0 --x => server pkg by pkg
        node /x/node_modules/@me/thing/index.js => server pkg by pkg
        npx cowsay @me/thing => launcher
        python3 -m me.tools => server mod by mod
        python3 -m me.tools2 => other me.tools2
        exe: /opt/tools/1/bin/run ./run => server binary by binary
        exe: '/opt/tools/1/bin/run' run => server binary by binary
        kb mcp => server kb by kb
        kb search mcp => other kb
        node /usr/bin/kb mcp --x => server kb by kb
        my-bot => agent bot
        my-robot => other my-robot
        python3 /usr/bin/my-bot => agent bot
        python3 /h/my-bot.py => agent bot
        node /srv/gw/main.js run => agent gateway
        node /srv/gw/main.js status => other main.js
        node /srv/gw/main.js => other main.js
        # built-in rules stay
        claude => agent claude
        npx -y foo-mcp => server foo-mcp by package-mcp
        "
        .replace("'/opt", "/opt")
        .replace("run' run", "run run")
        .as_str(),
    );
}

#[test]
fn the_configuration_comes_first() {
    let book = r#"
        [[exempt]]
        name = "keep"
        program = "mcp-server-git"
        [[program]]
        kind = "supervisor"
        name = "goose is a database tool here"
        program = "goose"
        [[agent]]
        name = "inspector"
        program = "@modelcontextprotocol/inspector"
        [[program]]
        kind = "server"
        name = "both"
        program = "both"
        [[agent]]
        name = "both"
        program = "both"
        [[program]]
        kind = "multiplexer"
        name = "mux"
        program = "both --mux"
        [[program]]
        kind = "launcher"
        name = "wrap"
        program = "wrap"
        [[exempt]]
        name = "behind"
        program = "/nix/z/lib/index.js"
    "#;
    check_with(
        &rules(book),
        "
        mcp-server-git => exempt by keep
        uvx mcp-server-git@latest => exempt by keep
        python3 -m mcp_server_git => server mcp_server_git by module-mcp
        goose up => steward
        npx @modelcontextprotocol/inspector x => agent inspector
        both => server both by both
        both --mux => multiplexer
        wrap claude => launcher
        exe: /nix/x/node /nix/y/bin/foo-mcp /nix/z/lib/index.js => exempt by behind
        ",
    );
}

#[test]
fn rules_survive_their_own_text() {
    let rules = Rules::from_source("[[agent]]\nname = \"a \\\" b\"\nprogram = \"x* 1 *\"\n").unwrap();
    assert_eq!(Rules::from_source(&rules.source()).unwrap(), rules);
    assert_eq!(rules.role(&image("xy 1 2")), Role::Agent { name: "a \" b".into() });
    assert_eq!(rules.role(&image("xy 1")), Role::Other { name: "xy".into() });
    assert_eq!(Rules::default().source(), "");
    assert!(Rules::from_source("[[agent]]\nname = \"x\"\n").is_err());
    assert!(Rules::from_source("[[nonsense]]\n").is_err());
    let daemon = "[[agent]]\nname = \"bot\"\nprogram = \"botd\"\ndaemon = true\n";
    let rules = Rules::from_source(&Rules::from_source(daemon).unwrap().source()).unwrap();
    assert!(rules.is_daemon(&image("botd --x"), true) && !rules.is_daemon(&image("bot"), false));
    for wrong in
        [daemon.replace("agent", "exempt"), daemon.replace("program = \"botd\"", "unit = \"b.service\"")]
    {
        assert!(Rules::from_source(&wrong).unwrap_err().to_string().contains("daemon"), "{wrong}");
    }
}

#[test]
fn threads_are_scopes_by_the_rule_that_recognises() {
    let mine = rules(
        r#"
        [[agent]]
        name = "gateway"
        program = "/srv/gw.py run"
        thread_scoped = true
        [[agent]]
        name = "gateway"
        program = "/srv/*.py"
        [[agent]]
        name = "unit"
        unit = "gw.service"
        thread_scoped = true
        "#,
    );
    assert_eq!(Rules::from_source(&mine.source()).unwrap().source(), mine.source());
    let unit = |name: &str| Unit { manager: "system".into(), name: name.into() };
    let is = |name, line, unit: Option<&Unit>| {
        mine.rule_of(name, Some(&image(line)), unit).is_some_and(|rule| rule.thread_scoped)
    };
    assert!(is("gateway", "python3 /srv/gw.py run", None));
    assert!(!is("gateway", "python3 /srv/gw.py stop", None), "another rule recognises this one");
    assert!(!is("gateway", "python3 /srv/other.py run", None));
    assert!(!is("else", "python3 /srv/gw.py run", None));
    assert!(is("unit", "python3 /srv/x", Some(&unit("gw.service"))));
    assert!(!is("unit", "python3 /srv/x", Some(&unit("other.service"))));
    assert!(!is("unit", "python3 /srv/x", None));
    assert!(Rules::default().rule_of("claude", Some(&image("claude")), None).is_none());
    for table in ["exempt", "program"] {
        let other = format!("[[{table}]]\nname = \"x\"\nprogram = \"x\"\nthread_scoped = true\n");
        assert!(Rules::from_source(&other).is_err(), "{table}");
    }
    for wrong in ["[[program]]", "[[agent]]\nkind = 'launcher'", "[[exempt]]\nkind = 'server'"] {
        let error = Rules::from_source(&format!("{wrong}\nname = 'x'\nprogram = 'x'\n")).unwrap_err();
        assert!(error.to_string().contains("kind is for [[program]]"), "{error}");
    }
}

#[test]
fn idle_duplicates_are_those_of_the_agent_that_the_rule_recognises() {
    let mine = rules(
        r#"
        [[agent]]
        name = "gateway"
        program = "/srv/gw.py run"
        idle_duplicates = "4h"
        [[agent]]
        name = "gateway"
        program = "/srv/*.py"
        [[agent]]
        name = "unit"
        unit = "gw.service"
        idle_duplicates = "90m"
        "#,
    );
    assert_eq!(Rules::from_source(&mine.source()).unwrap().source(), mine.source());
    let gw = Unit { manager: "system".into(), name: "gw.service".into() };
    let minutes = |name, line, unit| {
        mine.rule_of(name, Some(&image(line)), unit)?.idle_duplicates().map(|time| time.as_secs() / 60)
    };
    assert_eq!(minutes("gateway", "python3 /srv/gw.py run", None), Some(240));
    assert_eq!(minutes("gateway", "python3 /srv/gw.py stop", None), None, "another rule recognises this one");
    assert_eq!(minutes("else", "python3 /srv/gw.py run", None), None);
    assert_eq!(minutes("unit", "python3 /srv/x", Some(&gw)), Some(90));
    assert_eq!(minutes("unit", "python3 /srv/x", None), None);
    assert_eq!(mine.shortest_idle_duplicates().map(|time| time.as_secs() / 60), Some(90));
    assert_eq!(Rules::default().shortest_idle_duplicates(), None);
    let rule = "[[agent]]\nname = 'x'\nprogram = 'x'\nidle_duplicates = '4h'\n";
    for (wrong, says) in [
        (rule.replace("agent", "exempt"), "idle_duplicates are for [[agent]] only"),
        (rule.replace("agent", "program"), "idle_duplicates are for [[agent]] only"),
        (rule.replace("4h", "900ms"), "idle_duplicates is shorter than 1s"),
        (rule.replace("4h", "25h"), "longer than a day"),
        (rule.replace("4h", "long"), "not a duration"),
    ] {
        let error = Rules::from_source(&wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// A shell script with an agent's name is a wrapper, unless the configuration says that it is the agent.
#[test]
fn a_shell_script_is_an_agent_by_rule_only() {
    check_with(&Rules::default(), "/bin/bash /usr/local/bin/claude => shell");
    let mine = rules("[[agent]]\nname = \"mine\"\nprogram = \"claude\"\n");
    check_with(&mine, "/bin/bash /usr/local/bin/claude => agent mine");
}

/// By the name that it is called by, and by that of its file.
#[test]
fn a_rule_knows_a_wrapped_program() {
    for name in ["tool", ".tool-wrapped"] {
        let book = rules(&format!("[[exempt]]\nname = 'mine'\nprogram = '{name}'"));
        for line in ["/nix/store/x/bin/.tool-wrapped", "node /nix/store/x/bin/.tool-wrapped"] {
            assert!(matches!(book.role(&image(line)), Role::Exempt { .. }), "{name}: {line}");
        }
        let other = book.role(&image("/nix/store/x/bin/.other-wrapped"));
        assert!(!matches!(other, Role::Exempt { .. }), "{name}");
    }
}

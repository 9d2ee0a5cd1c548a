"""A bash script talks to a server through `coproc` in the background; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/login_shell"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.put("talk.sh", """
        #!/bin/bash
        coproc SERVER { exec "$ORPHAND_SITUATION_DIR/bin/mcp-server-fake"; }
        while echo '{"id":1}' >&"${SERVER[1]}" && read -r answer <&"${SERVER[0]}"; do
            echo "$answer" >> results
            sleep 0.25
        done
    """)
    agent = stage.run(stage.part("claude", """
        shell(f"nohup bash {BIN}/talk.sh > /dev/null 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-fake")
    stage.grows("results")
    agent.kill()
    return stage.truth(in_use=[server, *stage.find("talk.sh")])

"""The agent is killed; `npx -y` > `sh -c` > server all stay, for nobody passes the end on."""
import situation

TRUTH = "orphan"
TWIN = "others/wrapper_killed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("npx", """
        here()
        subprocess.run(["/bin/sh", "-c", f"{BIN}/mcp-server-fake; exit $?"])
    """)
    agent = stage.run(stage.part("claude", """
        start("npx", "-y", "@modelcontextprotocol/server-fake", wire="socket")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    server = stage.who("mcp-server-fake")
    return stage.truth(orphans=[stage.who("npx"), situation.Process(server.parent()), server])

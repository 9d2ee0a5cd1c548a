"""Left before the daemon came, on a socket pair, with its launch chain."""
import situation

TRUTH = "orphan"
WHEN = "before"


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
    server, npx = stage.who("mcp-server-fake"), stage.who("npx")
    stage.adopted(npx)
    return stage.truth(orphans=[npx, situation.Process(server.parent()), server])

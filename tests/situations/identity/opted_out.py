"""The server opted out (`ORPHAND_OPT_OUT=1`); the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/busy_timer"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake", env={**os.environ, "ORPHAND_OPT_OUT": "1"})
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])

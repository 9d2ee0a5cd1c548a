"""Somebody read the server's results on behalf of the agent, and was killed with it."""

TRUTH = "orphan"
TWIN = "stdout/stdin_closed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("collector", "here()\nrest()\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        start("collector", wire=None, stdin=server.r)
        present("collector")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    stage.who("collector").kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

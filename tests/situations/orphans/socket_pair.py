"""The agent is killed; an interval timer keeps its server alive, on a socket pair as node's SDK and Claude Code make them."""

TRUTH = "orphan"
TWIN = "handed_on/successor_socket"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake", wire="socket")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

"""A server closed its own standard input; its agent is killed."""

TRUTH = "orphan"
TWIN = "stdout/stdin_closed"


def build(stage):
    stage.server("mcp-server-fake", "closed")
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

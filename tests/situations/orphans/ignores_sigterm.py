"""The agent is killed; its server ignores SIGTERM."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "deaf")
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

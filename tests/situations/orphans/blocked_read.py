"""The agent is killed; its server hangs in a read that never comes back, as on a dead network mount."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "blocked")
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

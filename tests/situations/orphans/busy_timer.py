"""The agent is killed; an interval timer keeps its server alive."""

TRUTH = "orphan"
TWIN = "handed_on/successor"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

"""Agent and server of an ordinary user; the agent is killed."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """), user=65534, group=65534, extra_groups=[])
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

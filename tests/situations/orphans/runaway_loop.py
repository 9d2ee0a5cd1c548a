"""The agent is killed; its server runs in a loop and eats processor time."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "spin")
    agent = stage.run(stage.part("codex", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("codex")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

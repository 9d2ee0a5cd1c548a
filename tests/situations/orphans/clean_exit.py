"""The agent ends by itself and leaves its server behind."""
import situation

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("gemini", """
        start("mcp-server-fake")
    """))
    server = stage.who("mcp-server-fake")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(orphans=[server])

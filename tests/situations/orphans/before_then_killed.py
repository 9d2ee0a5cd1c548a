"""Agent and server were there before the daemon came; the agent is killed under its eyes."""

TRUTH = "orphan"
WHEN = "before"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    # The agent ends itself six seconds after it was built: by then the daemon has come.
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        time.sleep(6)
    """))
    stage.who("claude")
    return stage.truth(orphans=[stage.who("mcp-server-fake")], may_end=[agent])

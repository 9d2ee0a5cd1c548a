"""Before the daemon came: an agent at work with its server, nothing wrong."""

TRUTH = "in use"
WHEN = "before"
TWIN = "orphans/before_then_killed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        here()
        use("claude", start("mcp-server-fake").ask)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])

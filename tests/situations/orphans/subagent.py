"""An agent lives and uses its server; the agent below it was killed and left one."""

TRUTH = "mixed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("codex", """
        start("mcp-server-fake", "--as", "left")
        here()
        rest()
    """)
    outer = stage.run(stage.part("claude", """
        own = start("mcp-server-fake", "--as", "own")
        start("codex", wire=None)
        use("claude", own.ask)
    """))
    inner = stage.who("codex")
    inner.kill()
    stage.beats("claude")
    return stage.truth(orphans=[stage.who("left")], in_use=[outer, stage.who("own")])

"""The killed agent stays a zombie, because the program above it never waits."""

TRUTH = "orphan"

import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """)
    stage.run(stage.part("supervisor.py", """
        start("claude", wire=None)
        rest()
    """))
    agent = stage.who("claude")
    agent.kill(signal.SIGKILL)
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

"""The agent dies by SIGHUP when its terminal closes; its server, in a session of its own, does not."""

TRUTH = "orphan"
TWIN = "copies/background"

import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake", start_new_session=True)
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill(signal.SIGHUP)
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

#!/usr/bin/python3 -B
"""Agent and server were there before the daemon came; the agent is killed under its eyes."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

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


situation.main()

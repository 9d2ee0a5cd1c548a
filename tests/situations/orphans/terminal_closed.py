#!/usr/bin/python3 -B
"""The agent dies by SIGHUP when its terminal closes; its server, in a session of its own, does not."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

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


situation.main()

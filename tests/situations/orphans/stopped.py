#!/usr/bin/python3 -B
"""The agent is killed; its server is stopped by SIGSTOP and hears no SIGTERM."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"


import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-fake")
    server.kill(signal.SIGSTOP, wait=False)
    agent.kill()
    return stage.truth(orphans=[server])


situation.main()

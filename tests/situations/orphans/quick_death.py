#!/usr/bin/python3 -B
"""The agent dies within a millisecond after its server's exec."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake", asked=False)
        os.kill(os.getpid(), signal.SIGKILL)
    """))
    server = stage.who("mcp-server-fake")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(orphans=[server])


situation.main()

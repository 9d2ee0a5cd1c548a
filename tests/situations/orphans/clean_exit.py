#!/usr/bin/python3 -B
"""The agent ends by itself and leaves its server behind."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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


situation.main()

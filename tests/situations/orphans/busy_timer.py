#!/usr/bin/python3 -B
"""The agent is killed; an interval timer keeps its server alive (pipes)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "handed_on/successor"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """)
    agent = stage.run(agent)
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])


situation.main()

#!/usr/bin/python3 -B
"""The agent is killed; its server hangs in a read that never comes back, as on a dead network mount."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "blocked")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])


situation.main()

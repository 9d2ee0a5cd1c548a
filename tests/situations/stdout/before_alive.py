#!/usr/bin/python3 -B
"""Before the daemon came: an agent at work with its server, nothing wrong."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
WHEN = "before"
TWIN = "orphans/before_then_killed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        here()
        use("claude", start("mcp-server-fake").ask)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])


situation.main()

#!/usr/bin/python3 -B
"""Left before the daemon came: adopted by init, both wires hung up."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
WHEN = "before"
TWIN = "stdout/before"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    server = stage.who("mcp-server-fake")
    stage.adopted(server)
    return stage.truth(orphans=[server])


situation.main()

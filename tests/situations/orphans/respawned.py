#!/usr/bin/python3 -B
"""A launcher starts its server anew whenever that dies; the agent of both is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("npx", """
        here()
        while True:
            subprocess.run([f"{BIN}/mcp-server-fake"])
    """)
    agent = stage.run(stage.part("claude", """
        start("npx", "-y", "mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("npx"), stage.who("mcp-server-fake")])


situation.main()

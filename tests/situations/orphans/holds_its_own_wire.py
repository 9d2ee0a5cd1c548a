#!/usr/bin/python3 -B
"""A server opened its own standard input for writing as well, so that its pipe never hangs up; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "handed_on/reopened"


def build(stage):
    stage.part("mcp-server-fake", """
        keep = os.open("/proc/self/fd/0", os.O_WRONLY)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])


situation.main()

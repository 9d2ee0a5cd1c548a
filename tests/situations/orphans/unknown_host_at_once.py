#!/usr/bin/python3 -B
"""A home-made host that no rule knows is killed the moment its server runs."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.run(stage.part("chat_host.py", """
        start("mcp-server-fake")
        os.kill(os.getpid(), signal.SIGKILL)
    """))
    return stage.truth(orphans=[stage.who("mcp-server-fake")])


situation.main()

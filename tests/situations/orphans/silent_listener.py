#!/usr/bin/python3 -B
"""The server listens on a port too, but nobody ever called; its agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "clients/keep_alive"


def build(stage):
    stage.part("mcp-server-fake", """
        in_background(answer_calls, listen("tcp"))
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

#!/usr/bin/python3 -B
"""An agent and its server have been idle for long; nobody died."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        here()
        on_call("claude", server.ask)
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])


situation.main()

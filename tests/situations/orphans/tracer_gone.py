#!/usr/bin/python3 -B
"""A debugger was attached to the server and has gone; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "clients/debugger"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-fake")
    debugger = stage.run(stage.part("debugger", """
        trace(present("mcp-server-fake"))
        here()
        rest()
    """))
    stage.who("debugger")
    debugger.kill()
    agent.kill()
    return stage.truth(orphans=[server])


situation.main()

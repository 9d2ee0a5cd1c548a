#!/usr/bin/python3 -B
"""A debugger is attached to the server (PTRACE_SEIZE); the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/tracer_gone"


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
    agent.kill()
    return stage.truth(in_use=[server, debugger])


situation.main()

#!/usr/bin/python3 -B
"""A debugger is attached to a thread of the server, not to its leader; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/tracer_gone"


def build(stage):
    stage.part("mcp-server-fake", """
        in_background(rest_in_a_thread)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-fake")
    debugger = stage.run(stage.part("debugger", """
        pid = present("mcp-server-fake")
        trace(max(int(tid) for tid in os.listdir(f"/proc/{pid}/task")))
        here()
        rest()
    """))
    stage.who("debugger")
    agent.kill()
    return stage.truth(in_use=[server, debugger])


situation.main()

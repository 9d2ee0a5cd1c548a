#!/usr/bin/python3 -B
"""A server that is a bridge to another one, on a wire of its own; their agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "others/agent_below_a_server"


def build(stage):
    stage.server("mcp-server-inner", "timer")
    stage.part("mcp-proxy", """
        inner = start("mcp-server-inner")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-proxy")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-proxy"), stage.who("mcp-server-inner")])


situation.main()

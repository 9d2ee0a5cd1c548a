#!/usr/bin/python3 -B
"""A server started a helper on streams of its own, which starts no server; their agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "others/own_agent_below_a_server"


def build(stage):
    stage.part("assistant.py", "here()\nrest()\n")
    stage.part("mcp-server-agents", """
        start("assistant.py", wire=None)
        present("assistant.py")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-agents")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-agents"), stage.who("assistant.py")])


situation.main()

#!/usr/bin/python3 -B
"""A client stays connected over TCP; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/calls_a_database"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("person", """
        connection = dial("tcp", "mcp-server-web")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])


situation.main()

#!/usr/bin/python3 -B
"""A client is connected over IPv6 and says nothing for now; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/calls_a_database"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp6"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web")
        here()
        rest()
    """))
    stage.who("claude")
    person = stage.run(stage.part("person", """
        connection = dial("tcp6", "mcp-server-web")
        ask_over(connection)
        on_call("person", lambda: ask_over(connection))
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])


situation.main()

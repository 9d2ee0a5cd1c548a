#!/usr/bin/python3 -B
"""A client calls now and then, the last time a moment ago; at the look nothing is connected."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/silent_listener"


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
    person = stage.run(stage.part("person", """
        call("tcp", "mcp-server-web")
        on_call("person", lambda: call("tcp", "mcp-server-web"), every=20)
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])


situation.main()

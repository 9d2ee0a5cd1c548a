#!/usr/bin/python3 -B
"""Not the server but a child of it listens and has a client; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("dashboard", """
        listener = listen("tcp")
        here()
        answer_calls(listener)
    """)
    stage.part("mcp-server-web", """
        start("dashboard", wire=None)
        present("dashboard")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("person", """
        connection = dial("tcp", "dashboard")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("dashboard")], may_end=[stage.who("mcp-server-web")])


situation.main()

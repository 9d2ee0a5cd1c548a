#!/usr/bin/python3 -B
"""The server speaks HTTP too; its client uses short connections and closes first (TIME_WAIT at the client). The agent is killed."""
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
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'mcp-server-web'))\n"))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])


situation.main()

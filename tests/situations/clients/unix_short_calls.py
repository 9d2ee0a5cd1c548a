#!/usr/bin/python3 -B
"""A client calls again and again over a unix socket, which leaves no TIME_WAIT; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-broker", """
        in_background(answer_calls, listen("unix"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-broker")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("person", "use('person', lambda: call('unix', 'mcp-broker'))\n"))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-broker")])


situation.main()

#!/usr/bin/python3 -B
"""An agent execs in place into a program that no rule knows, which talks on through the wires."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/unknown_host"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        os.set_inheritable(server.w, True)
        become("helper.py", *words(server))
    """))
    stage.beats("helper")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])


situation.main()

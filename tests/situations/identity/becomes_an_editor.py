#!/usr/bin/python3 -B
"""A server execs in place into an editor with a person at it; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/execs_in_place"


def build(stage):
    stage.part("vim", """
        here()
        use("vim", lambda: open(f"{DIR}/notes", "a").write("word "))
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        become("vim")
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-turncoat")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("vim")
    agent.kill()
    return stage.truth(in_use=[stage.who("vim")])


situation.main()

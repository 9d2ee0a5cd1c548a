#!/usr/bin/python3 -B
"""The server execs in place into an agent when its owner is dead and the grace runs."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/execs_in_place"


import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("codex", """
        here()
        use("codex", start("mcp-server-fake").ask)
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        signal.signal(signal.SIGUSR1, lambda *_: become("codex"))
        here()
        rest()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-turncoat")
        here()
        rest()
    """))
    stage.who("claude")
    turncoat = stage.who("mcp-server-turncoat")
    agent.kill()
    turncoat.kill(signal.SIGUSR1, wait=False)
    stage.beats("codex")
    return stage.truth(in_use=[stage.who("codex"), stage.who("mcp-server-fake")])


situation.main()

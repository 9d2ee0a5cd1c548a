#!/usr/bin/python3 -B
"""A server answers SIGTERM with children that ignore it; its agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"


def build(stage):
    stage.part("mcp-server-fake", """
        def on_term(*_):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for n in range(3):
                copy(rest)
        signal.signal(signal.SIGTERM, on_term)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])


situation.main()

#!/usr/bin/python3 -B
"""An agent dies within a millisecond after its server's exec; the agent above it lives and has nothing to do with that server."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "mixed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("claude", """
        start("mcp-server-fake", "--as", "left", asked=False)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    outer = stage.run(stage.part("codex", """
        own = start("mcp-server-fake", "--as", "own")
        start("claude", wire=None).wait()
        use("codex", own.ask)
    """))
    stage.beats("codex")
    return stage.truth(orphans=[stage.who("left")], in_use=[outer, stage.who("own")])


situation.main()

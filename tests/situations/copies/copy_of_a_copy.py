#!/usr/bin/python3 -B
"""The host and its worker are killed; the worker's own fork, in the same session, works on through the wire."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        def work():
            copy(lambda: use("second", server.ask), alias="second")
            rest()
        copy(work, alias="first")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("second")
    host.kill()
    stage.who("first").kill()
    return stage.truth(in_use=[stage.who("second"), stage.who("mcp-server-fake")])


situation.main()

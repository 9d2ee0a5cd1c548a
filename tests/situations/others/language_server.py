#!/usr/bin/python3 -B
"""An agent's language server, on pipes, outlives it: no MCP server, so not ours to end."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.server("pyright-langserver", "timer")
    agent = stage.run(stage.part("claude", """
        start("pyright-langserver", "--stdio")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[stage.who("pyright-langserver")])


situation.main()

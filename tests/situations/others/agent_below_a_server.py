#!/usr/bin/python3 -B
"""An agent lives below a server and works with one of its own; the agent of the first is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/bridge"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("codex", "here()\nuse('codex', start('mcp-server-fake').ask)\n")
    stage.part("mcp-server-agents", """
        start("codex", wire=None)
        present("codex")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-agents")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("codex")
    agent.kill()
    in_use = [stage.who("codex"), stage.who("mcp-server-fake")]
    return stage.truth(in_use=in_use, may_end=[stage.who("mcp-server-agents")])


situation.main()

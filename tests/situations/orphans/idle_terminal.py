#!/usr/bin/python3 -B
"""A leaking server had opened a terminal with a shell that waits for commands; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "let_go/in_a_terminal"


def build(stage):
    stage.part("mcp-server-terminal", """
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/bash", ["bash", "--norc"])
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-terminal")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-terminal")])


situation.main()

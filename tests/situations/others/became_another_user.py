#!/usr/bin/python3 -B
"""The server gave up its rights and is another user than its agent, which is killed: left to a person's word."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])


situation.main()

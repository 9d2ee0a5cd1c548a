#!/usr/bin/python3 -B
"""Somebody opened the server's pipes anew through /proc/PID/fd and talks; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    user = stage.run(stage.part("tap.py", """
        folder = f"/proc/{present('mcp-server-fake')}/fd"
        here()
        use("tap", Server(os.open(f"{folder}/0", os.O_WRONLY), os.open(f"{folder}/1", os.O_RDONLY)).ask)
    """))
    stage.beats("tap")
    agent.kill()
    return stage.truth(in_use=[user, stage.who("mcp-server-fake")])


situation.main()

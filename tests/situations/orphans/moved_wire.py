#!/usr/bin/python3 -B
"""A Python server moved its wire to another descriptor, as the SDK 2 does; its agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "handed_on/moved_wire"


def build(stage):
    stage.part("mcp-server-fake", """
        wire_in, wire_out = os.dup(0), os.dup(1)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(2, 1)
        here()
        answer(os.read(wire_in, 65536), wire_out)
        while os.read(wire_in, 65536):
            pass
        leak_on("timer")
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

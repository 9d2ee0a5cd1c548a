#!/usr/bin/python3 -B
"""`mcp-server-x <<< '{}' > results &`: the input is a pipe whose writer is gone, the output a file."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        shell(f"nohup {BIN}/mcp-server-batch <<< '{{}}' > results 2> /dev/null &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    return stage.truth(in_use=[server])


situation.main()

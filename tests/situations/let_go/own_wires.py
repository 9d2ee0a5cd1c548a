#!/usr/bin/python3 -B
"""A let-go job has a pipeline of its own, with pipes that the server never had; the server leaks, the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "mixed"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-shell", """
        shell(f"{BIN}/job 2>/dev/null | sed -u s/step/done/ > {DIR}/results 2>/dev/null &")
        present("job")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-shell")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("job")
    stage.grows("results")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-shell")], in_use=[stage.who("job"), *stage.find("sed")])


situation.main()

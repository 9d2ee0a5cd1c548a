#!/usr/bin/python3 -B
"""The server crashes first and leaves a job in a session of its own; then its agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


import signal


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-ops", """
        start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), start_new_session=True)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-ops")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("job")
    stage.who("mcp-server-ops").kill(signal.SIGSEGV)
    agent.kill()
    return stage.truth(in_use=[stage.who("job")])


situation.main()

#!/usr/bin/python3 -B
"""A leaking server had double-forked a job into a session of its own; the agent is killed: the job works on."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "mixed"
TWIN = "orphans/tied_browser"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-ops", """
        def middle():
            os.setsid()
            start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), stderr=subprocess.DEVNULL)
        os.waitpid(copy(middle), 0)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-ops")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("job")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-ops")], in_use=[stage.who("job")])


situation.main()

#!/usr/bin/python3 -B
"""A leaking server started a job in a session of its own, with a log for output, that inherits standard input; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "mixed"


def build(stage):
    stage.part("mcp-server-fake", """
        subprocess.Popen([f"{BIN}/job"], stdout=open(f"{DIR}/job.log", "w"), stderr=subprocess.STDOUT, start_new_session=True)
        present("job")
        serve()
    """)
    stage.part("job", """
        here()
        use("job", lambda: None)
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")

    stage.beats("job")
    agent.kill()
    return stage.truth(in_use=[stage.who("job")], orphans=[stage.who("mcp-server-fake")])


situation.main()

#!/usr/bin/python3 -B
"""A server's shell tool runs `job > log 2>&1 & wait`, and the job hangs; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "let_go/shell_job"


def build(stage):
    stage.part("job", "here()\nrest()\n")
    stage.part("mcp-server-shell", """
        here()
        answer(os.read(0, 65536))
        subprocess.run(["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log 2>&1 & wait"], stdin=subprocess.DEVNULL)
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-shell")
        here()
        rest()
    """))
    stage.who("claude")

    stage.who("job")
    agent.kill()
    return stage.truth(orphans=stage.everyone())

situation.main()

#!/usr/bin/python3 -B
"""A server waits for a tool that it reads from (git, whose hook hangs); its agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "let_go/hook_job"


def build(stage):
    stage.part("git", "here()\nsubprocess.run(['/bin/sh', '-c', 'while :; do sleep 1000; done'])\n")
    stage.part("mcp-server-git", """
        here()
        answer(os.read(0, 65536))
        subprocess.run([f"{BIN}/git", "commit"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-git")
        here()
        rest()
    """))
    stage.who("claude")
    stage.find("sleep")
    agent.kill()
    return stage.truth(orphans=stage.everyone())


situation.main()

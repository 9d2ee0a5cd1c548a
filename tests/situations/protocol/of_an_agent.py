#!/usr/bin/python3 -B
"""The agent is killed; its server, which no rule knows, stays."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "protocol/handed_on"


def build(stage):
    stage.server("main.py", "timer")
    agent = stage.run(stage.part("claude", "use('agent', session('/usr/bin/python3', '-ISB', f'{BIN}/main.py', wire='socket').ask)\n"))
    stage.was_used("agent")
    agent.kill()
    return stage.truth(orphans=[stage.who("main.py")])


situation.main()

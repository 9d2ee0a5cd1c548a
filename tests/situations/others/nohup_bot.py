#!/usr/bin/python3 -B
"""A bot that the agent started with nohup; no server at all. The agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("bot.py", "here()\nuse('bot', lambda: print('step', flush=True))\n")
    agent = stage.run(stage.part("claude", """
        shell(f"nohup {BIN}/bot.py > bot.log 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("bot")
    agent.kill()
    return stage.truth(in_use=[stage.who("bot.py")])


situation.main()

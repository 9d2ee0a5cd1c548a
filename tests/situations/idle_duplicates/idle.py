#!/usr/bin/python3 -B
"""A duplicate does nothing while a newer one is in use, and the agent's rule has idle_duplicates."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "mixed"
TWIN = "idle_duplicates/without_a_rule"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("tidy-gateway", """
        older, newer = two()
        here()
        use("tidy-gateway", newer.ask)
    """))
    stage.beats("tidy-gateway")
    return stage.truth(orphans=[stage.who("older")], in_use=[agent, stage.who("newer")])


situation.main()

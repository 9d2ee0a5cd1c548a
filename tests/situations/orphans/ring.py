#!/usr/bin/python3 -B
"""Three servers of one killed agent call each other over TCP in a ring; nobody else uses any."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients"))
import used_in_a_ring
from used_in_a_ring import situation

TRUTH = "orphan"
TWIN = "clients/used_in_a_ring"


def build(stage):
    agent, three = used_in_a_ring.servers(stage)
    agent.kill()
    return stage.truth(orphans=three)


situation.main()

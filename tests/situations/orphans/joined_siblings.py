#!/usr/bin/python3 -B
"""Three servers of one killed agent are joined in a row by pairs of sockets; nobody else uses any."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients"))
import used_through_two_siblings
from used_through_two_siblings import situation

TRUTH = "orphan"
TWIN = "clients/used_through_two_siblings"


def build(stage):
    agent, three = used_through_two_siblings.servers(stage)
    agent.kill()
    return stage.truth(orphans=three)


situation.main()

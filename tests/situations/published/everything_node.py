#!/usr/bin/python3 -B
"""server-everything with its ticker on (a socket pair); its host on the Node SDK is killed"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "orphan"
NEEDS = ["npm"]
TWIN = "published/host_node"


def build(stage):
    host = software.ticking(stage, "node", "node", software.everything())
    return stage.truth(orphans=host.kill())


if __name__ == "__main__":
    situation.main()

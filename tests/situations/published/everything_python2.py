#!/usr/bin/python3 -B
"""server-everything with its ticker on; its host on the Python SDK 2 is killed"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]
TWIN = "published/host_python2"


def build(stage):
    host = software.ticking(stage, "python2", "node", software.everything())
    return stage.truth(orphans=host.kill())


if __name__ == "__main__":
    situation.main()

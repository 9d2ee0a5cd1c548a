#!/usr/bin/python3 -B
"""server-filesystem blocked in a read, as on a network mount that went away; its host on the Python SDK 2 is killed"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]


def build(stage):
    host = software.reading(stage, "python2")
    return stage.truth(orphans=host.kill())


if __name__ == "__main__":
    situation.main()

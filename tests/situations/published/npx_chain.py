#!/usr/bin/python3 -B
"""npm exec > sh > server-everything with its ticker on; the host on the Python SDK 2 is killed"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]
TWIN = "published/wrapper_killed"


def build(stage):
    host = software.ticking(stage, "python2", *software.NPX, "@modelcontextprotocol/server-everything", cwd=software.fixture("NPM"), programs=3)
    return stage.truth(orphans=host.kill())


if __name__ == "__main__":
    situation.main()

#!/usr/bin/python3 -B
"""a living host with forked pool workers that inherited the wire"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "in use"
NEEDS = ["npm", "python2"]
TWIN = "published/pool_workers_python2"


def build(stage):
    host = software.Host(stage, "python2", "node", software.everything(), pool=2, use=True)
    return stage.truth(in_use=[host.process, *host.server, *host.workers])


if __name__ == "__main__":
    situation.main()

#!/usr/bin/python3 -B
"""the Node SDK closes the session of an npx chain: npm and sh die, the server does not, and the host lives on"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "orphan"
NEEDS = ["npm"]
TWIN = "published/wrapper_killed"


def build(stage):
    host = software.ticking(stage, "node", *software.NPX, "@modelcontextprotocol/server-everything", cwd=software.fixture("NPM"), programs=3, close=f"{stage.dir}/go/close")
    *wrapper, server = host.server
    stage.go("close")
    software.within("the wrapper is gone", lambda: not any(p.alive() for p in wrapper))
    return stage.truth(orphans=[server], in_use=[host.process])


situation.main()

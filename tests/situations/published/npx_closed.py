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
    host = software.ticking(stage, "node", *software.NPX, "@modelcontextprotocol/server-everything", cwd=software.fixture("NPM"), programs=0, close=True)
    return stage.truth(orphans=stage.find("mcp-server-everything"), in_use=[host.process])


situation.main()

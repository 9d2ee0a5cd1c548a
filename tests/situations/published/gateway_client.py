#!/usr/bin/python3 -B
"""supergateway as a stdio server in front of a remote one; its host is killed"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]
TWIN = "published/bridge"


def build(stage):
    port, _ = software.bridge(stage)
    host = software.Host(stage, "python2", software.npm_bin("supergateway"), "--streamableHttp", f"http://127.0.0.1:{port}/mcp")
    host.kill()
    return stage.truth(orphans=host.server)


situation.main()

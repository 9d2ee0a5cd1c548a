#!/usr/bin/python3 -B
"""supergateway, detached, with a server-everything whose ticker is on; the bridge is killed"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software
import web

TRUTH = "orphan"
NEEDS = ["npm"]
TWIN = "published/bridge"


def build(stage):
    port, service = web.bridge(stage)
    web.http_client(stage, port, ticker=True)
    servers = software.below(service)
    service.kill()
    return stage.truth(orphans=servers)


if __name__ == "__main__":
    situation.main()

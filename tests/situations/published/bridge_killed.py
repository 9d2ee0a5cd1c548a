"""supergateway, detached, with a server-everything whose ticker is on; the bridge is killed"""
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

"""supergateway as a detached HTTP service in front of a stdio server, with a client that asks over and over"""
import software
import web

TRUTH = "in use"
NEEDS = ["npm", "python2"]
TWIN = "published/bridge_killed"


def build(stage):
    port, service = web.bridge(stage)
    client = web.http_client(stage, port)
    return stage.truth(in_use=[service, *software.below(service), client])

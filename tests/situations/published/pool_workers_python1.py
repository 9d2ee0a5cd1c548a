"""forked pool workers of the killed host (Python SDK 1) hold the wire's other end"""
import software

TRUTH = "orphan"
NEEDS = ["npm", "python1"]
TWIN = "published/pool_host"


def build(stage):
    host = software.Host(stage, "python1", "node", software.everything(), pool=2)
    return stage.truth(orphans=host.kill(), may_end=host.workers)

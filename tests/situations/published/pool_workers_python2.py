"""forked pool workers of the killed host (Python SDK 2) hold the wire's other end"""
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]
TWIN = "published/pool_host"


def build(stage):
    host = software.Host(stage, "python2", "node", software.everything(), pool=2)
    return stage.truth(orphans=host.kill(), may_end=host.workers)

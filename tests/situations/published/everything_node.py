"""server-everything with its ticker on (a socket pair); its host on the Node SDK is killed"""
import software

TRUTH = "orphan"
NEEDS = ["npm"]
TWIN = "published/host_node"


def build(stage):
    host = software.ticking(stage, "node", "node", software.everything())
    return stage.truth(orphans=host.kill())

"""server-everything with its ticker on; its host on the Python SDK 2 is killed"""
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]
TWIN = "published/host_python2"


def build(stage):
    host = software.ticking(stage, "python2", "node", software.everything())
    return stage.truth(orphans=host.kill())

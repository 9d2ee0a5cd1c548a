"""server-everything with its ticker on; its host on the Python SDK 1 is killed"""
import software

TRUTH = "orphan"
NEEDS = ["npm", "python1"]
TWIN = "published/host_python1"


def build(stage):
    host = software.ticking(stage, "python1", "node", software.everything())
    return stage.truth(orphans=host.kill())

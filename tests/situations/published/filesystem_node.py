"""server-filesystem blocked in a read, as on a network mount that went away; its host on the Node SDK is killed"""
import software

TRUTH = "orphan"
NEEDS = ["npm"]


def build(stage):
    host = software.reading(stage, "node")
    return stage.truth(orphans=host.kill())

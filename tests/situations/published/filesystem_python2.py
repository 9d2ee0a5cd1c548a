"""server-filesystem blocked in a read, as on a network mount that went away; its host on the Python SDK 2 is killed"""
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]


def build(stage):
    host = software.reading(stage, "python2")
    return stage.truth(orphans=host.kill())

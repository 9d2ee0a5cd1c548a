"""npm exec > sh > server-everything with its ticker on; the host on the Python SDK 2 is killed"""
import software

TRUTH = "orphan"
NEEDS = ["npm", "python2"]
TWIN = "published/wrapper_killed"


def build(stage):
    host = software.ticking(stage, "python2", *software.NPX, "@modelcontextprotocol/server-everything", cwd=software.fixture("NPM"), programs=3)
    return stage.truth(orphans=host.kill())

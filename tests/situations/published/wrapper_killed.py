"""npm exec > sh > server-everything; only npm is killed: the rest is pid 1's, its host goes on using it"""
import software

TRUTH = "in use"
NEEDS = ["npm", "python2"]
TWIN = "published/npx_chain"


def build(stage):
    host = software.ticking(stage, "python2", *software.NPX, "@modelcontextprotocol/server-everything", cwd=software.fixture("NPM"), programs=3, use=True)
    wrapper, *rest = host.server
    wrapper.kill()
    return stage.truth(in_use=[host.process, *rest])

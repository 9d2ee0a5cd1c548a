"""server-everything, ticker on, and server-memory (socket pairs) below a living host on the Node SDK"""
import software

TRUTH = "in use"
NEEDS = ["npm"]
TWIN = "published/everything_node"


def build(stage):
    one = software.ticking(stage, "node", "node", software.everything(), use=True, name="one")
    two = software.Host(stage, "node", software.npm_bin("mcp-server-memory"), use=True, name="two")
    return stage.truth(in_use=[one.process, *one.server, two.process, *two.server])

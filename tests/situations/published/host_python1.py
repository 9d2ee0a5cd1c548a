"""server-everything, ticker on, and server-filesystem below a living host on the Python SDK 1"""
import software

TRUTH = "in use"
NEEDS = ["npm", "python1"]
TWIN = "published/everything_python1"


def build(stage):
    one = software.ticking(stage, "python1", "node", software.everything(), use=True, name="one")
    two = software.Host(stage, "python1", software.npm_bin("mcp-server-filesystem"), stage.dir, use=True, name="two")
    return stage.truth(in_use=[one.process, *one.server, two.process, *two.server])

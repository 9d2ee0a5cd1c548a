"""server-everything, mcp-server-time (its wire is not on fd 0) below living hosts on the Python SDK 2"""
import software

TRUTH = "in use"
NEEDS = ["npm", "python2"]
TWIN = "published/everything_python2"


def build(stage):
    one = software.ticking(stage, "python2", "node", software.everything(), use=True, name="one")
    two = software.Host(stage, "python2", software.venv_bin("PYTHON2", "mcp-server-time"), use=True, name="two")
    return stage.truth(in_use=[one.process, *one.server, two.process, *two.server])

"""uvx > mcp-server-time blocked in its start, in a read of time zones that never ends; the host on the Python SDK 2 is killed"""
import os
import software

TRUTH = "orphan"
NEEDS = ["python2"]
TWIN = "published/host_python2"


def build(stage):
    zones = f"{stage.dir}/zones"
    os.mkdir(zones)
    os.mkfifo(f"{zones}/Hung")
    how = {"env": {"PYTHONTZPATH": zones}, "mute": True}
    host = software.Host(stage, "python2", software.venv_bin("PYTHON2", "uvx"), "mcp-server-time", "--local-timezone", "UTC", **how)

    def blocked():
        tree = software.below(host.process)
        return len(tree) == 2 and software.waits_in(tree[1]) == "wait_for_partner"

    software.within("the server waits for a writer", blocked)
    tree = software.below(host.process)
    host.kill()
    return stage.truth(orphans=tree)

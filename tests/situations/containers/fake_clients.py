"""The agent of a container is killed; a user without rights to the engine has 257 processes with the arguments of a client that is in it."""
import os
import situation
from boxes import Docker

TRUTH = "orphan"
TWIN = "containers/entered"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    stage.who("claude")
    pair = docker.pair("box")
    crowd = "import os, time\nfor _ in range(256):\n    if os.fork() == 0: break\ntime.sleep(600)"
    # Python takes what follows its program for arguments of that, and Docker's client `-c` for an option with a value.
    words = ["docker", "-c", crowd, "exec", "-i", f"{os.path.basename(stage.dir)}-box", "/bin/mcp-server-box"]
    stage.run(*words, executable=situation.PYTHON, user=64001, group=64001, extra_groups=[])
    alike = lambda: [one for one in stage.everyone() if one.argv()[3:5] == words[3:5]]
    situation.within("257 of them", lambda: len(alike()) >= 257)
    agent.kill()
    return stage.truth(orphans=pair)

"""Two agents start a container of one image each, a second apart and without names; the second is killed, the other works on."""
import os
import time
from boxes import Docker

TRUTH = "mixed"
TWIN = "containers/one_image_the_first_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    docker.call("tag", os.environ["ORPHAND_SITUATION_IMAGE"], "mcp/second")
    stage.part("claude", """
        server = box(None, "--label", called(ALIAS), image="mcp/second")
        here()
        use(ALIAS, server.ask)
    """)
    works = stage.run(f"{stage.dir}/bin/claude", "--as", "works")
    first = docker.labelled("works")
    time.sleep(1)  # the time itself is what tells them apart
    killed = stage.run(f"{stage.dir}/bin/claude", "--as", "killed")
    second = docker.labelled("killed")
    stage.was_used("killed")
    stage.beats("works")
    killed.kill()
    return stage.truth(orphans=second, in_use=[works, *first])

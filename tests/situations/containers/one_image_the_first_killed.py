"""Two agents start a container of one image each, a second apart and without names; the first is killed, the other works on."""
import os
import time
from boxes import Docker

TRUTH = "mixed"
TWIN = "containers/one_image_the_second_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    docker.call("tag", os.environ["ORPHAND_SITUATION_IMAGE"], "mcp/first")
    stage.part("claude", """
        server = box(None, "--label", called(ALIAS), image="mcp/first")
        here()
        use(ALIAS, server.ask)
    """)
    killed = stage.run(f"{stage.dir}/bin/claude", "--as", "killed")
    first = docker.labelled("killed")
    time.sleep(1)  # the time itself is what tells them apart
    works = stage.run(f"{stage.dir}/bin/claude", "--as", "works")
    second = docker.labelled("works")
    stage.was_used("killed")
    stage.beats("works")
    killed.kill()
    return stage.truth(orphans=first, in_use=[works, *second])

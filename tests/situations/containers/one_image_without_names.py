"""Two agents have a container of one image each, without names; one is killed, the other works on."""
import os
from boxes import Docker

TRUTH = "mixed"
TWIN = "containers/one_image"
NEEDS = ["docker"]
COST = "the engine does not tell which of the two containers is whose client's"


def build(stage):
    docker = Docker(stage)
    docker.call("tag", os.environ["ORPHAND_SITUATION_IMAGE"], "mcp/twin")
    stage.part("claude", """
        server = box(None, "--label", called(ALIAS), image="mcp/twin")
        here()
        use(ALIAS, server.ask)
    """)
    killed = stage.run(f"{stage.dir}/bin/claude", "--as", "killed")
    works = stage.run(f"{stage.dir}/bin/claude", "--as", "works")
    pair, kept = docker.labelled("killed"), docker.labelled("works")
    stage.was_used("killed")
    stage.beats("works")
    killed.kill()
    return stage.truth(orphans=pair, in_use=[works, *kept])

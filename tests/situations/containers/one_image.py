"""Two agents have a container of one image each, both with names; one is killed, the other works on."""
from boxes import Docker

TRUTH = "mixed"
TWIN = "containers/one_image_without_names"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    stage.part("claude", """
        server = box(ALIAS)
        here()
        use(ALIAS, server.ask)
    """)
    killed = stage.run(f"{stage.dir}/bin/claude", "--as", "killed")
    works = stage.run(f"{stage.dir}/bin/claude", "--as", "works")
    pair, kept = docker.pair("killed"), docker.pair("works")
    stage.was_used("killed")
    stage.beats("works")
    killed.kill()
    return stage.truth(orphans=pair, in_use=[works, *kept])

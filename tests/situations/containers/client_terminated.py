"""The clients of two containers are sent SIGTERM, which the servers ignore; one of the agents is killed, the other works on."""
from boxes import Docker
import signal

TRUTH = "mixed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    stage.part("claude", """
        server = box(ALIAS, program=["/bin/sh", "-c", "trap '' TERM; exec /bin/mcp-server-box"])
        here()
        use(ALIAS, server.ask)
    """)
    killed = stage.run(f"{stage.dir}/bin/claude", "--as", "killed")
    works = stage.run(f"{stage.dir}/bin/claude", "--as", "works")
    pair, kept = docker.pair("killed"), docker.pair("works")
    stage.was_used("killed")
    stage.beats("works")
    for client in (pair[0], kept[0]):
        client.kill(signal.SIGTERM, wait=False)
    killed.kill()
    return stage.truth(orphans=pair, in_use=[works, *kept])

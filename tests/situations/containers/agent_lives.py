"""An agent talks to a server in a container, with an init process, and rests beside another one."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/agent_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        box("idle")
        server = box("box", "--init")
        here()
        use("claude", server.ask)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, *docker.pair("box"), *docker.pair("idle")])

"""The server in a container listens on a socket in a volume, and another agent's server calls there; its agent is killed."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/agent_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    stage.part("mcp-server-fake", """
        in_background(answer_calls, listen("unix", "box"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        box("box", *of_the_host(), program=[f"{BIN}/mcp-server-fake"])
        here()
        rest()
    """))
    stage.who("claude")
    pair = docker.pair("box")
    client = stage.run(stage.part("client", """
        here()
        use("client", lambda: call("unix", "box"))
    """))
    stage.beats("client")
    agent.kill()
    return stage.truth(in_use=[client, *pair])

"""The server in a container serves a port of the host as well, and a client uses that; its agent is killed."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/agent_killed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    stage.part("mcp-server-fake", """
        in_background(answer_calls, listen("tcp", "box"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        box("box", *of_the_host(), network="host", program=[f"{BIN}/mcp-server-fake"])
        here()
        rest()
    """))
    stage.who("claude")
    pair = docker.pair("box")
    client = stage.run(stage.part("client", """
        here()
        use("client", lambda: call("tcp", "box"))
    """))
    stage.beats("client")
    agent.kill()
    return stage.truth(in_use=[client, *pair])

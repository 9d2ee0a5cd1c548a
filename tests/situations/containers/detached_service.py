"""An agent started a container in the background (`-d`) and is killed; another one runs servers in it."""
from boxes import Docker

TRUTH = "in use"
TWIN = "containers/entered"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        where = ["--network", "none", "--cgroup-parent", os.environ["ORPHAND_SITUATION_GROUP"]]
        image = os.environ["ORPHAND_SITUATION_IMAGE"]
        line = ["docker", "run", "-d", "--rm", *where, "--name", called("box"), image, "/bin/mcp-server-deaf"]
        shell(" ".join(line))
        here()
        rest()
    """))
    inside = docker.first("box")
    stage.who("claude")
    other = stage.run(stage.part("codex", """
        server = docker("exec", "-i", called("box"), "/bin/mcp-server-box")
        here()
        use("codex", server.ask)
    """))
    stage.beats("codex")
    agent.kill()
    return stage.truth(in_use=[other, docker.client("exec"), inside])

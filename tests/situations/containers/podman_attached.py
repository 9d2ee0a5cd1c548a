"""The agent of a container of podman is killed; another one is attached to it, and waits."""
from boxes import Podman

TRUTH = "in use"
TWIN = "containers/podman_agent_killed"
NEEDS = ["podman"]


def build(stage):
    podman = Podman(stage)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    stage.who("claude")
    pair = podman.pair("box")
    other = stage.run(stage.part("codex", """
        docker("attach", "--sig-proxy=false", called("box"))
        here()
        rest()
    """))
    stage.who("codex")
    agent.kill()
    return stage.truth(in_use=[other, podman.client("attach"), pair[1]], may_end=[pair[0]])

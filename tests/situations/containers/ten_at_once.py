"""An agent with ten containers is killed, half of them with an init process; another agent works with an eleventh."""
from boxes import Docker

TRUTH = "mixed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        here()
        servers = [box(f"b{n}", *["--init"] * (n % 2), asked=False) for n in range(10)]
        rest()
    """))
    other = stage.run(stage.part("codex", """
        server = box("kept")
        here()
        use("codex", server.ask)
    """))
    pairs = [docker.pair(f"b{n}") for n in range(10)]
    kept = docker.pair("kept")
    stage.beats("codex")
    agent.kill()
    return stage.truth(orphans=[one for pair in pairs for one in pair], in_use=[other, *kept])

"""A server with a megabyte of environment, in which nothing opts out; its agent is killed."""

TRUTH = "orphan"
TWIN = "identity/opted_out_far_behind"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        filling = {f"FILLING_{n:02}": "x" * 100000 for n in range(10)}
        start("mcp-server-fake", env={**os.environ, **filling})
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

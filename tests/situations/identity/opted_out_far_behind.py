"""The server opted out behind a megabyte of environment; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/big_environment"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        filling = {f"FILLING_{n:02}": "x" * 110000 for n in range(12)}
        start("mcp-server-fake", env={**os.environ, **filling, "ORPHAND_OPT_OUT": "1"})
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])

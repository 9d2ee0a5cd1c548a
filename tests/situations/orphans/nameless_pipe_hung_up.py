"""The agent had two pipes to its server beside the standard streams, and nobody else has them; it is killed."""

TRUTH = "orphan"
TWIN = "clients/nameless_pipe"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        jobs, results = os.pipe(), os.pipe()
        start("mcp-server-fake", pass_fds=[jobs[0], results[1]])
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])

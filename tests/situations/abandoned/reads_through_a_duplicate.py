"""The agent closed the input and the output, of which it had made a duplicate, and reads the results there."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        kept = os.dup(server.r)
        server.let_go()
        here()
        use("claude", lambda: os.read(kept, 1000) or 1 / 0)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch")])

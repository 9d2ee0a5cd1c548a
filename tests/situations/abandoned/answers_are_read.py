"""The agent closed the input of a long job, as one does after the last request, and reads its results."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        os.close(server.w)
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch")])

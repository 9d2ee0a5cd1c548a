"""The agent closed both ends; a forked copy of it keeps the end of the output and reads the results."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        os.close(server.w)
        copy(lambda: use("copy", lambda: os.read(server.r, 1000) or 1 / 0), alias="copy")
        os.close(server.r)
        here()
        rest()
    """))
    stage.beats("copy")
    return stage.truth(in_use=[agent, stage.who("copy"), stage.who("mcp-server-batch")])

"""The agent closed both ends, and another process reads the results."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("collector", "here()\nuse('collector', lambda: os.read(0, 1000) or 1 / 0)\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        start("collector", wire=None, stdin=server.r)
        present("collector")
        server.let_go()
        here()
        rest()
    """))
    stage.beats("collector")
    return stage.truth(in_use=[agent, stage.who("collector"), stage.who("mcp-server-batch")])

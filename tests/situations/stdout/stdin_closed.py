"""The agent asked for a long job, gave the reading of its results to another, closed the server's input and ended."""
import situation

TRUTH = "in use"
TWIN = "orphans/reader_gone"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("collector", "here()\nuse('collector', lambda: os.read(0, 1000) or 1 / 0)\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        start("collector", wire=None, stdin=server.r)
        present("collector")
        server.let_go()
    """))
    stage.beats("collector")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("collector"), stage.who("mcp-server-batch")])

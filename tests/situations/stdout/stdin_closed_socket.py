"""The agent asked for a long job over a socket pair, shut its writing side down, gave the reading to another and ended."""
import situation

TRUTH = "in use"
TWIN = "orphans/reader_gone"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("collector", "here()\nuse('collector', lambda: os.read(0, 1000) or 1 / 0)\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch", wire="socket")
        start("collector", wire=None, stdin=server.r)
        present("collector")
        socket.socket(fileno=server.w).shutdown(socket.SHUT_WR)
    """))
    stage.beats("collector")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("collector"), stage.who("mcp-server-batch")])

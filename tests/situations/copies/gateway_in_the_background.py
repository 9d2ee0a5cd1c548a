"""A gateway forks itself into the background and the foreground ends with success."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("openclaw", """
        server = start("mcp-server-fake", wire="socket")
        copy(lambda: use("copy", server.ask), alias="copy")
        present("copy")
        os._exit(0)
    """), "gateway")
    stage.beats("copy")
    situation.within("the foreground's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("copy"), stage.who("mcp-server-fake")])

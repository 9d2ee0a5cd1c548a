"""Before the daemon came: a copy of the agent in a session of its own works on, the agent is dead."""
import situation

TRUTH = "in use"
WHEN = "before"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        copy(lambda: use("copy", server.ask), setsid=True, alias="copy")
        present("copy")
    """))
    stage.beats("copy")
    situation.within("the agent's end", lambda: not agent.alive())
    stage.adopted(stage.who("mcp-server-fake"))
    return stage.truth(in_use=[stage.who("copy"), stage.who("mcp-server-fake")])
